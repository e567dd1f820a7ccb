"""How Spark is reached: an app that is submitted, a server that stays."""
