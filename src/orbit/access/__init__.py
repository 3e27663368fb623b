"""Who may do what: credentials, their actions and their queue scope, checked inside every transaction."""
