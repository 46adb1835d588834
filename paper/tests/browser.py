"""A headless browser for the tests of pages, and what it is asked."""

import json
import os
import select
import subprocess
import sys

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and answers on 4.
LAUNCH = """
import os, sys
commands, answers, program = sys.argv[1:4]
os.dup2(int(commands), 3), os.dup2(int(answers), 4)
os.execv(program, sys.argv[3:])
"""
SECONDS = 30


class Browser:
    """A headless browser driven over a pipe, with one page."""

    def __init__(self, program, profile):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        arguments = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(commands), str(answers), *arguments],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self.buffer, self.count, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda m: m.get("id") == self.count)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, url, width, scheme="light", media="", height=900):
        """Load a page and return what its console, the log and the network had to say."""
        mobile = width < 600
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=url)
        self._until(lambda m: m.get("method") == "Page.loadEventFired")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        said = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed")
        asked = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        foreign = [e for e in asked if not e["params"]["request"]["url"].startswith(("file:", "data:", "about:"))]
        return [e for e in self.events if e["method"] in said] + foreign

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self):
        os.close(self.commands)  # the browser ends when nobody can command it any more
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)

    def _until(self, wanted):
        while True:
            while b"\0" not in self.buffer:
                assert select.select([self.answers], [], [], SECONDS)[0], "the browser does not answer"
                read = os.read(self.answers, 1 << 20)
                assert read, "the browser ended"
                self.buffer += read
            line, self.buffer = self.buffer.split(b"\0", 1)
            message = json.loads(line)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message


# What sticks out of the page, out of its figure or out of a box that hides it. Wide tables scroll inside a box of
# their own, which must fit and must be able to scroll.
CUT_OFF = """(() => {
  const found = [], width = document.documentElement.clientWidth;
  const say = (element, why) => found.push(`${element.tagName} “${element.textContent.slice(0, 40)}” ${why}`);
  if (document.documentElement.scrollWidth > width) found.push("the page scrolls sideways");
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (box.width === 0 || box.height === 0) continue;
    const scroller = element.parentElement.closest(".scroll"), figure = element.closest("svg");
    const scrolls = scroller && getComputedStyle(scroller).overflowX === "auto";
    if (!scrolls && !figure && (box.left < -0.5 || box.right > width + 0.5)) say(element, `ends at ${box.right}`);
    const start = scrolls && scroller.getBoundingClientRect().left + scroller.clientLeft - scroller.scrollLeft;
    if (scrolls && (box.left < start - 0.5 || box.right > start + scroller.scrollWidth + 0.5))
      say(element, "cannot be scrolled to");
    if (["hidden", "clip"].includes(style.overflowX) && !figure && element.scrollWidth > element.clientWidth + 1)
      say(element, "hides a part");
    if (figure && element.tagName === "text") {
      const frame = figure.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
          || box.bottom > frame.bottom + 1) say(element, "leaves its figure");
    }
  }
  return found;
})()"""

# The contrast of every text with what lies behind it, and of every curve; the lowest of each kind.
CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data; };
  const light = colour => { const [r, g, b] = [...rgb(colour)].map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05); };
  const back = element => { for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor; if (rgb(colour)[3] > 0) return colour; } return "white"; };
  const lowest = {text: 99, curve: 99};
  for (const element of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(element);
    const words = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    const colour = element.tagName === "text" ? style.fill : style.color;
    if (words && !element.closest("title, desc"))
      lowest.text = Math.min(lowest.text, ratio(colour, back(element)));
    if (element.matches("[id*=line2d_] > path[style*=series]"))
      lowest.curve = Math.min(lowest.curve, ratio(style.stroke, back(element)));
  }
  return lowest;
})()"""

FIGURES = """[...document.querySelectorAll("figure svg")].map(svg => {
  const box = svg.getBoundingClientRect();
  return [box.width, box.height, svg.querySelectorAll("path").length, svg.querySelectorAll("text").length];
})"""

# Unfold everything: what is folded has no size that could be checked.
OPEN = "document.querySelectorAll('details').forEach(details => { details.open = true; })"

PICTURES = """[...document.querySelectorAll("figure img")].map(image => {
  const box = image.getBoundingClientRect();
  return [image.complete, image.naturalWidth, image.naturalHeight, box.width, box.height];
})"""
