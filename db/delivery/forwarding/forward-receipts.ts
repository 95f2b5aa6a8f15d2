import { and, asc, eq, gte, lte, sql } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";
import { startOfHour } from "#model/horizon.ts";
import { packReceipts, RECEIPT_BYTES, unpackReceipts } from "#model/waf-event.ts";
import type { Queryable } from "../../client.ts";
import { names } from "../../postgres/terms.ts";
import {
  forwardDestinations as d,
  forwardRefusals as f,
  forwardHours as h,
  forwardReceipts as r,
} from "../../schema/forwarding.ts";
import type { ForwardedZone } from "./forward-cursors.ts";

/** Times of the first and the last event of a page, of one hour; epoch ms. */
interface PageSpan {
  readonly firstAt: number;
  readonly lastAt: number;
}

/** Returns the receipts of acknowledged and of refused events of a page, and of some around it, oldest first. */
export async function readReceipts(
  db: Queryable,
  { destination, zoneId }: ForwardedZone,
  { firstAt, lastAt }: PageSpan,
): Promise<{ receipts: string[]; refused: string[] }> {
  const batches = await db
    .select({ receipts: r.receipts })
    .from(r)
    .where(
      and(
        eq(r.destination, destination),
        eq(r.zoneId, zoneId),
        eq(r.startsAt, new Date(startOfHour(firstAt))),
        lte(r.firstAt, new Date(lastAt)),
        gte(r.lastAt, new Date(firstAt)),
      ),
    )
    .orderBy(asc(r.id));
  const refusals = await db
    .select({ receipt: f.receipt })
    .from(f)
    .where(
      and(
        eq(f.destination, destination),
        eq(f.zoneId, zoneId),
        gte(f.occurredAt, new Date(firstAt)),
        lte(f.occurredAt, new Date(lastAt)),
      ),
    );
  return {
    receipts: batches.flatMap(({ receipts }) => unpackReceipts(receipts)),
    refused: refusals.flatMap(({ receipt }) => unpackReceipts(receipt)),
  };
}

/** Answer of a destination about a batch of one hour. */
export interface Answered extends PageSpan {
  readonly receipts: readonly string[];
  /** How many of the receipts are of events without an earlier receipt. */
  readonly first: number;
  readonly refused: readonly {
    readonly occurredAt: number;
    readonly logId: string;
    readonly receipt: string;
    readonly reason: string;
  }[];
}

/** Returns how many events a destination has acknowledged and refused, of hours with an answer in the last 60 minutes. */
export async function readTally(
  db: Queryable,
  destination: string,
): Promise<{ acknowledged: number; refused: number }> {
  const isRecent = (at: AnyPgColumn) => sql`${at} > now() - interval '1 hour'`;
  const [hours] = await db
    .select({ acknowledged: sql<number>`coalesce(sum(${h.acknowledged}), 0)::float8` })
    .from(h)
    .where(and(eq(h.destination, destination), isRecent(h.acknowledgedAt)));
  const refused = await db.$count(f, and(eq(f.destination, destination), isRecent(f.refusedAt)));
  return { acknowledged: hours?.acknowledged ?? 0, refused };
}

/** Stores an answer. An accepted event that was refused with other values before is no longer refused. */
export async function storeAnswer(
  tx: Queryable,
  { destination, zoneId }: ForwardedZone,
  { firstAt, lastAt, receipts, first, refused }: Answered,
): Promise<void> {
  const startsAt = new Date(startOfHour(firstAt));
  const hour = { destination, zoneId, startsAt };
  if (receipts.length > 0) {
    const span = { firstAt: new Date(firstAt), lastAt: new Date(lastAt) };
    await tx.insert(r).values({ ...hour, ...span, receipts: packReceipts(receipts) });
    const keys = sql.param(receipts.map((receipt) => receipt.slice(0, 2 * RECEIPT_BYTES - 8)));
    await tx.execute(sql`
      delete from ${f} where ${f.destination} = ${destination} and ${f.zoneId} = ${zoneId}
        and ${f.occurredAt} between ${span.firstAt} and ${span.lastAt}
        and encode(substr(${f.receipt}, 1, 8), 'hex') = any(${keys}::text[])`);
    // With the receipts, because the run that ends with a note of its own may take an hour. Seldom, because lanes share the row.
    await tx
      .update(d)
      .set({ acknowledgedAt: sql`now()` })
      .where(
        sql`${d.destination} = ${destination} and coalesce(${d.acknowledgedAt} < now() - interval '10 seconds', true)`,
      );
  }
  if (refused.length > 0) {
    const now = sql`now()`;
    await tx
      .insert(f)
      .values(
        refused.map(({ occurredAt, logId, receipt, reason }) => ({
          destination,
          zoneId,
          logId,
          reason,
          refusedAt: now,
          occurredAt: new Date(occurredAt),
          receipt: packReceipts([receipt]),
        })),
      )
      .onConflictDoUpdate({
        target: [f.destination, f.zoneId, f.occurredAt, f.logId],
        set: { refusedAt: now, receipt: sql`excluded.receipt`, reason: sql`excluded.reason` },
      });
  }
  await tx.execute(sql`
    insert into ${h} (${names(h.destination, h.zoneId, h.startsAt, h.acknowledged, h.acknowledgedAt)})
    values (${destination}, ${zoneId}, ${startsAt}, ${first}, now())
    on conflict (${names(h.destination, h.zoneId, h.startsAt)}) do update
    set ${names(h.acknowledged)} = ${h.acknowledged} + ${first}, ${names(h.acknowledgedAt)} = now(), ${names(h.arrival)} = 'open'`);
}
