import type { KnownSourceRow } from "#db/detection/known-sources.ts";
import type { KnownSource } from "#model/known-source.ts";

/** A known source as `--json` prints it. */
export interface KnownItem {
  /** Null: it stands in the configuration file. */
  readonly id: number | null;
  readonly kind: KnownSource["kind"];
  readonly pattern: string;
  /** Null: every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly reason: string;
  readonly until: string | null;
  readonly createdBy: string | null;
}

export function rowToItem({
  id,
  kind,
  pattern,
  zoneId,
  reason,
  expiresAt,
  createdBy,
}: KnownSourceRow): KnownItem {
  const zoneIds = zoneId === null ? null : [zoneId];
  return { id, kind, pattern, zoneIds, reason, until: expiresAt?.toISOString() ?? null, createdBy };
}

export function fileToItem({ untilMs, ...one }: KnownSource): KnownItem {
  return {
    id: null,
    ...one,
    until: untilMs === null ? null : new Date(untilMs).toISOString(),
    createdBy: null,
  };
}
