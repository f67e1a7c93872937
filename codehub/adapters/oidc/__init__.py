"""OpenID Connect: signing in through an identity provider, by authorization code with PKCE."""
