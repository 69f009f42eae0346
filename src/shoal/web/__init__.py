"""The scheduler's web page, and what programs ask of it over HTTP."""
