"""The Portcullis web application firewall inside an application.

A Waf is a policy at work; threads share one. portcullis.wsgi and portcullis.asgi have middleware for it.
"""

from ._native import Exchange, Waf

__all__ = ["Exchange", "Waf"]
