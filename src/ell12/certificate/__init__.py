"""Proofs that a solution is a global minimum, or lower bounds on how far it is from one."""

from ell12.certificate.certify import Certificate, certify

__all__ = ["Certificate", "certify"]
