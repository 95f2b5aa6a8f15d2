export interface AnsweredGroup {
  readonly key: Readonly<Record<string, string>>;
  readonly count: number;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly context: object;
  readonly sparkline?: readonly number[];
}

export interface AnsweredRow {
  readonly logId: string;
  readonly at: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** The answer of both sides in one form, so that the two can be compared. */
export type Answer =
  | { readonly total: number; readonly rows: readonly AnsweredRow[] }
  | { readonly total: number; readonly groups: readonly AnsweredGroup[] };
