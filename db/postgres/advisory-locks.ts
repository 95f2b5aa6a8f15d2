/** Keys of the database-wide advisory locks, in one place so that no two meanings share a number. */
export const ADVISORY_LOCKS = {
  migrate: 7_603_001,
  partitions: 7_603_002,
  erasures: 7_603_003,
  /** Held while the alert of a weekly digest is written. */
  weeklyDigest: 7_603_004,
  /** Locked by the trigger that numbers alert transitions. */
  alertTransitions: 7_603_012,
} as const;
