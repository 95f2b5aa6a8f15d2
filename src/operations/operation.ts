import { createHmac, timingSafeEqual } from "node:crypto";
import type { z } from "zod";
import type { Searching } from "#archive/search/searching.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import type { AuditEntry } from "#db/people/audit-trail.ts";
import type { Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Scope } from "#model/kinds.ts";
import type { Zones } from "#model/zones.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import type { Caller } from "./caller.ts";
import { AccountName, namesZones } from "./fields.ts";
import { Refusal } from "./refusal.ts";
import type { ServiceView } from "./service-life.ts";

/** The parts that an operation answers from. A face makes them for each call. */
export interface QueryContext {
  readonly caller: Caller;
  /** The pool for questions of clients. */
  readonly db: Queryable;
  /** Epoch ms, of the clock that the service writes with. */
  readonly now: number;
  readonly cursors: PageCursors;
  readonly log: Pick<Log, "warn">;
  /** Names and labels of zones as they are now. */
  readonly zones: () => Zones;
  readonly service: ServiceView;
  readonly searching: Searching;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** The console's session that asks; null for a key. */
  readonly sessionId: string | null;
  /** The same on all replicas of this installation, and on no other. */
  readonly instanceId: string;
}

/** The parts that need no database. */
export type Settled = Pick<QueryContext, "service" | "zones" | "now">;

/** The same for an operation that changes something. */
export interface Changing extends QueryContext {
  /** The transaction of the change and of its audit entry. */
  readonly tx: Queryable;
  /** The pool, for work that is no transaction. Its changes must be safe to repeat. */
  readonly database: Database;
  /** The clock, because work that takes long needs later times than `now`. */
  readonly clock: Clock;
  /** Null if the platform's address is not known. */
  readonly edge: Pick<EdgeClient, "searchEventLogs" | "listEventLogs"> | null;
  /** Keeps erased data from being stored again. Without it, events that an erasure may cover are refused. */
  readonly erasures?: ErasureGuard;
  /** Hands work to a job now. Without it, and where it fails, the sweep finds the work. */
  readonly enqueue: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
  /** Runs after the commit. */
  readonly afterCommit: (work: () => Promise<unknown>) => void;
}

/** An audit entry without its actor. Addresses in `details` must be masked, because an erasure changes no entry. */
export type AuditNote = Omit<AuditEntry, "actor">;

/** Text without control characters, in a style or plain. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** A column of the table that the command line prints of a list. */
export interface Column<Item> {
  readonly head: string;
  /** Texts of people and of events must go through `toLine`. */
  readonly get: (item: Item, at: { readonly now: number }) => Cell;
}

/** The rows of a table are the items of a list, or the points of a curve. */
type ItemOf<Output> = Output extends
  | { readonly items: readonly (infer Item)[] }
  | { readonly points: readonly (infer Item)[] }
  ? Item
  : never;

type OperationName = `${string}.${string}`;

interface Described<Input extends z.ZodObject, Output extends z.ZodType, Name extends OperationName> {
  /** Subject and verb: `silences.list` is the command `silences list`. */
  readonly name: Name;
  /** One sentence without a full stop. */
  readonly summary: string;
  readonly description?: string;
  /** Members of `input` that the path names are its parameters; others are in the query, or in the body of a change. */
  readonly http: readonly ["GET" | "POST" | "PUT" | "PATCH" | "DELETE", `/api/v1/${string}`];
  /** Heading in the OpenAPI document. */
  readonly tag: string;
  readonly input: Input;
  readonly output: Output;
  /** Members of `input` that are in the query although the operation has a body. */
  readonly query?: readonly (keyof z.input<Input> & string)[];
  /** The member with the zone's id; a key for other zones is refused. */
  readonly zone?: keyof z.input<Input> & string;
  /** A session is refused: the person enters the key again. */
  readonly withKey?: true;
  /** One key may have only so many of such operations in progress. */
  readonly heavy?: "read" | "export";
  /** Statuses with which `run` refuses what `input` lets through. */
  readonly refuses?: readonly number[];
  /** The example of the OpenAPI document. */
  readonly example?: z.input<Input>;
  /** Returns headers of the HTTP answer. */
  readonly headers?: (output: z.output<Output>) => Readonly<Record<string, string>>;
  /** The key may be the password of HTTP Basic. */
  readonly takesBasic?: true;
  /** The body may have more members, which nobody reads: a webhook of others. */
  readonly takesMore?: true;
  /** Returns the answer in another form than JSON, with its media type; null for JSON. A client that accepts only JSON gets JSON. */
  readonly render?: (
    output: z.output<Output>,
    input: z.output<Input>,
  ) => { readonly type: string; readonly body: string } | null;
  /** Returns a sentence for a 503, whatever failed: what the service last answered; null if it has not. */
  readonly sayLast?: (asked: Pick<QueryContext, "searching" | "now">, input: unknown) => string | null;
  /** Returns the address of what was created, which makes the answer a 201; null if nothing was. */
  readonly created?: (output: z.output<Output>) => string | null;
  /** The work goes on after the answer, which is a 202. */
  readonly goesOn?: true;
  /** The tab with the list on the console's page of operations. Left out: the list has a page of its own, or none. */
  readonly tab?: string;
  /** Only the console's pages need the operation, so an assistant gets no tool for it. */
  readonly isForPages?: true;
  /** Without it, the operation has no command. Several commands ask for the same in different ways. */
  readonly command?: CommandForm<Input, Output> | readonly CommandForm<Input, Output>[];
}

/** A command that runs an operation. It needs columns or `say`. */
export interface CommandForm<Input extends z.ZodObject, Output extends z.ZodType> {
  /** The verb. Default: that of the operation. An empty text is the command of the subject itself, such as `gaps`. */
  readonly name?: string;
  /** The first line of the help. Default: the operation's summary. */
  readonly summary?: string;
  /** Members that the command sets, and that are no flags of it. */
  readonly preset?: Partial<z.input<Input>>;
  /** Arguments of the program: `silences list --state expired`. */
  readonly examples: readonly string[];
  /** More sentences for the help. */
  readonly help?: string;
  readonly columns?: readonly Column<ItemOf<z.output<Output>>>[];
  /** Printed instead of a table without rows. */
  readonly empty?: string;
  /** The text of an answer that is no list, or text below the table. */
  readonly say?: (output: z.output<Output>, about: Said<Input>) => string;
  /** Default 0. */
  readonly exitCode?: (output: z.output<Output>) => number;
  /** The rows of a list without `--limit`. Default 1,000. Null: the command shows all rows and has no `--limit`. */
  readonly limit?: number | null;
}

/** Returns the lines of a table. */
export type DrawTable = (heads: readonly string[], rows: readonly (readonly Cell[])[]) => string;

interface Said<Input extends z.ZodObject> {
  readonly now: number;
  readonly input: z.input<Input>;
  readonly paint: (style: Style, text: string) => string;
  readonly table: DrawTable;
  /** Width of the terminal. */
  readonly columns: number;
}

/** An operation that changes nothing. */
export interface Query<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodType = z.ZodType,
  Name extends OperationName = OperationName,
> extends Described<Input, Output, Name> {
  readonly changes: false;
  readonly scope: Exclude<Scope, "act">;
  /** Answers from the settings alone, so that the command line opens no database; null for an input that needs one. */
  readonly settle?: (settled: Settled, input: z.output<Input>) => z.input<Output> | null;
  readonly run: (asked: QueryContext, input: z.output<Input>) => Promise<z.input<Output>>;
}

/** An operation that changes something. It cannot return without saying what the audit trail gets. */
export interface Change<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodType = z.ZodType,
  Name extends OperationName = OperationName,
> extends Described<Input, Output, Name> {
  readonly changes: true;
  readonly scope: Scope;
  /** `run` does more than a transaction may, such as sending a message. Its `tx` is the database. */
  readonly isLong?: true;
  /** The command line opens a client of the platform for it. */
  readonly asksPlatform?: true;
  /** Runs in a transaction, up to five times if Postgres asks for it, unless it is long. */
  readonly run: (changing: Changing, input: z.output<Input>) => Promise<Changed<z.input<Output>>>;
}

/** The time that a client waits for a change that is long. The list of a large day takes minutes within the request budget. */
export const LONG_MS = 600_000;

export interface Changed<Output> {
  readonly output: Output;
  /** Null if nothing was changed. */
  readonly audit: AuditNote | readonly AuditNote[] | null;
}

// biome-ignore lint/suspicious/noExplicitAny: an operation is contravariant in its input and covariant in its output
export type Operation = Query<any, any, any> | Change<any, any, any>;

/** Runs an operation with an input as it was typed, which its schema accepts, and returns its output. */
export type AskOperation = (
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
) => Promise<unknown>;

/** Describes what a person or a program can ask. */
export function defineQuery<
  Input extends z.ZodObject,
  Output extends z.ZodType,
  const Name extends OperationName,
>(query: Omit<Query<Input, Output, Name>, "changes">): Query<Input, Output, Name> {
  const [method] = query.http;
  const zone = query.input.shape["zone"] as z.ZodType | undefined;
  // Zones that need not be named can be named by their account. `perform` puts its zones in the place of `zone`.
  const takesAccount = method === "GET" && namesZones(zone) && zone?.safeParse(undefined).success === true;
  const input = takesAccount ? query.input.extend({ account: AccountName }) : query.input;
  return { ...query, input: input as z.ZodObject as Input, changes: false };
}

/** Describes what a person or a program can change. */
export function defineChange<
  Input extends z.ZodObject,
  Output extends z.ZodType,
  const Name extends OperationName,
>(change: Omit<Change<Input, Output, Name>, "changes">): Change<Input, Output, Name> {
  return { ...change, changes: true };
}

const VERSION = "c1";
const TAG_BYTES = 16;

export type Position = readonly (string | number | null)[];
type PageCursors = ReturnType<typeof createPageCursors>;

/**
 * Cursors of keyset paging: the end of the page before, signed, so that a client cannot ask for a position that no list
 * returned. Replicas share `secret`. `list` names the list, with everything that its order depends on (`alerts:101`); a
 * cursor of one list is not valid for another.
 */
export function createPageCursors(secret: Buffer) {
  const tagOf = (list: string, payload: string) =>
    createHmac("sha256", secret)
      .update(JSON.stringify([VERSION, list, payload]))
      .digest()
      .subarray(0, TAG_BYTES);

  return {
    sign(list: string, position: Position): string {
      const payload = Buffer.from(JSON.stringify(position)).toString("base64url");
      return `${VERSION}.${payload}.${tagOf(list, payload).toString("base64url")}`;
    },
    /** Null for anything but a cursor of this list. */
    read(list: string, cursor: string): Position | null {
      const [version, payload, tag, ...more] = cursor.split(".");
      if (version !== VERSION || payload === undefined || tag === undefined || more.length > 0) return null;
      const given = Buffer.from(tag, "base64url");
      const expected = tagOf(list, payload);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
      // Several spellings decode to the same bytes; only the one that was issued is valid.
      if (expected.toString("base64url") !== tag) return null;
      return JSON.parse(Buffer.from(payload, "base64url").toString()) as Position;
    },
    /**
     * The same for a native list's `after`.
     * @throws {Refusal} 400 for anything but a cursor of this list.
     */
    readAfter(list: string, after: string | undefined): Position | null {
      if (after === undefined) return null;
      const position = this.read(list, after);
      if (position !== null) return position;
      const rule =
        "must be the `next` of the previous page of this list, and all other parameters must be unchanged";
      throw new Refusal(400, { slug: "invalid-cursor", mistakes: [{ field: "after", rule }] });
    },
  };
}
