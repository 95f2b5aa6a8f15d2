import pg from "pg";

/** How often the searches are looked at. Times of storing are later by up to this. */
const EVERY_MS = 250;

/** A search of the newest minutes of a zone; epoch ms. */
export interface SearchMoment {
  readonly zoneId: number;
  /** The time up to which it searched, which is when it began. */
  readonly beganAt: number;
  /** When its events were seen in the database. */
  readonly storedAt: number;
}

/** Notes when the searches of each zone begin and are stored, until it is stopped. */
export async function followSearches(url: string) {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  const moments: SearchMoment[] = [];
  const newest = new Map<number, number>();
  let isAsking = false;
  async function search(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    try {
      const { rows } = await client.query<{ zoneId: number; at: number }>(
        `select zone_id as "zoneId", (extract(epoch from max(searched_through)) * 1000)::float8 as at
         from coverage_windows where starts_at > now() - interval '2 hours' group by zone_id`,
      );
      const storedAt = Date.now();
      for (const { zoneId, at } of rows) {
        if (at === null || at <= (newest.get(zoneId) ?? 0)) continue;
        newest.set(zoneId, at);
        moments.push({ zoneId, beganAt: at, storedAt });
      }
    } finally {
      isAsking = false;
    }
  }
  let timer: NodeJS.Timeout | undefined;
  return {
    moments: moments as readonly SearchMoment[],
    go(): void {
      timer ??= setInterval(() => void search().catch(() => undefined), EVERY_MS);
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await client.end();
    },
  };
}
