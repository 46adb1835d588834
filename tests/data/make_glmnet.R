# Coefficients of R's glmnet and log-likelihoods of R's survival, for tests that never need R:
#     Rscript tests/data/make_glmnet.R tests/data/glmnet.json
# Debian: r-base-core r-cran-glmnet r-cran-survival r-cran-jsonlite.
library(glmnet)
library(survival)
library(jsonlite)
RNGversion("4.0.0")
set.seed(15)
glmnet.control(fdev = 0, devmax = 1, epsnr = 1e-14, mxitnr = 1000)

round2 <- function(x) round(x, 2) # so that the file holds the numbers exactly
n <- 60
p <- 8
X <- round2(matrix(rnorm(n * p), n, p) + outer(rnorm(n), rep(0.5, p)))
signal <- round2(X[, 1] - 0.7 * X[, 2] + 0.5 * X[, 5])
weights <- sample(1:3, n, replace = TRUE)
offset <- round2(rnorm(n, sd = 0.3))
counts <- rpois(n, exp(0.5 + 0.4 * signal + offset))
classes <- apply(cbind(0, signal, -X[, 3]) + matrix(-log(-log(runif(3 * n))), n), 1, which.max) - 1
times <- round(1000 * rexp(n, exp(0.5 * signal)) + 1:n / 100, 2) # no two alike
stopifnot(!anyDuplicated(times))
events <- as.integer(runif(n) < 0.7)
labels <- as.integer(signal + rnorm(n) > 0)

fit <- function(family, y, lambda, ...) {
  # glmnet is asked for a path down to the strength, as its authors advise; only the last is kept.
  path <- lambda * c(8, 4, 2, 1)
  model <- glmnet(X, y, family = family, lambda = path, standardize = FALSE, thresh = 1e-15, maxit = 1e7, ...)
  last <- length(model$lambda)
  stopifnot(last == 4)
  if (family == "multinomial") {
    coef <- t(sapply(model$beta, function(beta) beta[, last]))
    intercept <- unname(model$a0[, last])
  } else {
    coef <- unname(model$beta[, last])
    intercept <- if (family == "cox") 0 else unname(model$a0[last])
  }
  list(alpha = lambda, coef = unname(coef), intercept = intercept)
}

# Tied times: by glmnet after Breslow, and the log-likelihoods of survival at given coefficients.
tied <- ceiling(times / 200)
beta <- round2(rnorm(p, sd = 0.4))
loglik <- function(ties, weights) {
  control <- coxph.control(iter.max = 0)
  coxph(Surv(tied, events) ~ X, init = beta, ties = ties, weights = weights, control = control)$loglik[2]
}
concordance_of <- function(time) unname(concordance(Surv(time, events) ~ I(-as.vector(X %*% beta)))$concordance)

found <- list(
  versions = list(
    R = as.character(getRversion()),
    glmnet = as.character(packageVersion("glmnet")),
    survival = as.character(packageVersion("survival"))
  ),
  X = X, weights = weights, offset = offset, counts = counts, classes = classes,
  times = times, tied = tied, events = events, labels = labels, beta = beta,
  poisson = fit("poisson", counts, 0.05),
  poisson_offset = fit("poisson", counts, 0.05, offset = offset, weights = weights),
  binomial = fit("binomial", labels, 0.02, weights = weights),
  multinomial = fit("multinomial", classes, 0.02),
  multinomial_weights = fit("multinomial", classes, 0.02, weights = weights),
  cox = fit("cox", Surv(times, events), 0.02),
  cox_weights = fit("cox", Surv(times, events), 0.02, weights = weights),
  cox_breslow = fit("cox", Surv(tied, events), 0.02),
  loglik = list(
    efron = loglik("efron", rep(1, n)), breslow = loglik("breslow", rep(1, n)),
    efron_weights = loglik("efron", weights), breslow_weights = loglik("breslow", weights)
  ),
  concordance = list(times = concordance_of(times), tied = concordance_of(tied))
)
path <- commandArgs(trailingOnly = TRUE)[1]
write(toJSON(found, digits = 17, auto_unbox = TRUE), path)
