"""Servers that let in whom they know: TLS, accounts, certificates, tokens, and the rights that are granted to each."""
