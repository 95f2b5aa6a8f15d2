-- Why: a key for an account is for the zones that the account has now, not for those that it had when the key was made.
-- Locks: api_keys for a moment, because the column has no default.
ALTER TABLE "api_keys" ADD COLUMN "accounts" text[];