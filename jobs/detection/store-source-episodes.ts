import type { Database } from "#db/client.ts";
import { readFirstSeen, readSourceEvents, type StoredSourceEvent } from "#db/detection/source-events.ts";
import { openSpike, type SpikeRow, updateSpike } from "#db/detection/spikes.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import type { KnownSources } from "#model/known-source.ts";
import {
  type SourceEpisode,
  type SourceFinding,
  strongestOf,
} from "#stages/detection/sources/source-episode.ts";
import { toSourceAddress } from "#stages/detection/sources/source-event.ts";
import { COMPARED_MINUTES, collectSourceEvidence } from "#stages/detection/sources/source-evidence.ts";
import type { PastSourceEpisode } from "#stages/detection/sources/source-watch.ts";
import { toSourceEpisode, toSourceRow } from "#stages/detection/sources/stored-sources.ts";
import { isNews } from "#stages/detection/stored-episode.ts";
import { LONGEST_WINDOW } from "#stages/detection/thresholds/windows.ts";

interface JudgedEpisodes {
  readonly isShadow: boolean;
  /** The open spike of the zone. */
  readonly row: SpikeRow | undefined;
  readonly known: KnownSources;
  /** The end of the judged minutes. */
  readonly through: number;
  readonly ended: readonly PastSourceEpisode[];
  readonly running: SourceEpisode | null;
}

/**
 * Stores the episodes of a zone as spikes. Returns whether a spike opened, changed or closed. A further quiet minute is
 * no change.
 */
export async function storeSourceEpisodes(
  database: Database,
  zoneId: number,
  { row, ended, running, ...judged }: JudgedEpisodes,
): Promise<boolean> {
  const episodes: { episode: SourceEpisode; closedAt: number | null }[] = ended.map((episode) => ({
    episode,
    closedAt: episode.closedAt,
  }));
  if (running !== null) episodes.push({ episode: running, closedAt: null });
  let hasChanged = false;
  // The spike of the row is the first of them.
  for (const [index, each] of episodes.entries()) {
    const storing = { ...judged, row: index === 0 ? row : undefined, ...each };
    hasChanged = (await storeEpisode(database, zoneId, storing)) || hasChanged;
  }
  return hasChanged;
}

interface ToStore {
  readonly isShadow: boolean;
  readonly row: SpikeRow | undefined;
  readonly known: KnownSources;
  readonly episode: SourceEpisode;
  readonly through: number;
  readonly closedAt: number | null;
}

async function storeEpisode(
  database: Database,
  zoneId: number,
  { isShadow, row, known, episode, through, closedAt }: ToStore,
) {
  const { db } = database;
  const times = { judgedThrough: closedAt ?? through, closedAt };
  const before = row === undefined ? null : toSourceEpisode(row);
  const strongest = strongestOf(episode);
  const isStronger = before === null || strongest.score > strongestOf(before).score;
  if (row?.sources != null && !isStronger) {
    const next = toSourceRow(episode, row.sources, times);
    return (await updateSpike(db, row.id, next)) && isNews(row, next);
  }
  const found = collectSourceEvidence(strongest, {
    hour: await readAll(database, zoneId, through - LONGEST_WINDOW, through),
    yesterday: await readAll(
      database,
      zoneId,
      through - COMPARED_MINUTES - MINUTES_PER_DAY,
      through - MINUTES_PER_DAY,
    ),
    endMinute: through,
    isKnown: known.isKnown,
  });
  const isoOf = (minute: number) => new Date(minute * MINUTE_MS).toISOString();
  const evidence = {
    from: isoOf(through - strongest.windowMinutes),
    to: isoOf(through),
    total: found.events,
    sampled: found.events,
    firstEventAt: found.firstMinute === null ? null : isoOf(found.firstMinute),
    lastEventAt: found.lastMinute === null ? null : isoOf(found.lastMinute),
    top: { ...found.top, action: [] },
    sparkline: found.sparkline,
  };
  const seenBefore =
    before !== null && strongestOf(before).key === strongest.key ? row?.sources?.firstSeen : null;
  const firstSeen = seenBefore ?? (await findFirstSeen(database, zoneId, strongest, through));
  const stored = { ...toSourceRow(episode, { ...found, firstSeen }, times), evidence };
  return row === undefined
    ? (await openSpike(db, { zoneId, isShadow, ...stored })) !== null
    : updateSpike(db, row.id, stored);
}

/** The day before is enough: a source that comes at the same hour of every day was seen 24 hours ago. */
function findFirstSeen(
  { db }: Database,
  zoneId: number,
  { kind, key }: SourceFinding,
  through: number,
): Promise<number | null> {
  const span = { from: through - MINUTES_PER_DAY, to: through };
  return readFirstSeen(db, { zoneId, kind, key, ...span }, toSourceAddress);
}

async function readAll({ db }: Database, zoneId: number, from: number, to: number) {
  const all: StoredSourceEvent[] = [];
  for await (const events of readSourceEvents(db, { zoneId, from, to })) all.push(...events);
  return all;
}
