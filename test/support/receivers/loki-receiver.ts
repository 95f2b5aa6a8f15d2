import { type Arrived, type Receiver, startReceiver } from "./receiver.ts";

/** Loki's limits. Their defaults are Loki's own, except that no time is refused unless a test says so. */
export interface LokiOptions {
  readonly authorization?: string;
  readonly tenant?: string;
  /** `max_line_size`. */
  readonly maxLineBytes?: number;
  /** The end of `reject_old_samples_max_age`, epoch ms. */
  readonly oldestMs?: number;
  /** Half of `max_chunk_age`. */
  readonly maxBehindMs?: number;
  /** `allow_structured_metadata`. */
  readonly takesMetadata?: boolean;
}

export interface LokiEntry extends Arrived {
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly line: string;
  readonly atMs: number;
}

type Values = readonly [string, string, Readonly<Record<string, string>>?];
interface Push {
  readonly streams: readonly {
    readonly stream: Readonly<Record<string, string>>;
    readonly values: readonly Values[];
  }[];
}

function need(isTrue: boolean, message: string): void {
  if (!isTrue) throw new Error(message);
}

function readEntries({ streams }: Push, takesMetadata: boolean): LokiEntry[] {
  return streams.flatMap(({ stream, values }) => {
    const labels = Object.entries(stream);
    need(labels.length > 0 && labels.length <= 15, `stream has ${labels.length} label names; limit 15`);
    for (const [name, value] of labels)
      need(/^[A-Za-z_]\w*$/.test(name) && value.length <= 2_048, `invalid labels ${name}`);
    return values.map(([nanoseconds, line, metadata = {}, ...rest]): LokiEntry => {
      need(/^\d{19}$/.test(nanoseconds) && rest.length === 0, "Value looks like array");
      const texts = Object.values(metadata);
      need(
        texts.length === 0 || takesMetadata,
        "includes structured metadata, but this feature is disallowed",
      );
      need(texts.length <= 128 && JSON.stringify(metadata).length <= 65_536, "structured metadata too large");
      need(
        texts.every((text) => typeof text === "string"),
        "Value looks like Number/Boolean/None",
      );
      const body: unknown = JSON.parse(line);
      const id = metadata["longwatch_id"] ?? String((body as { id?: unknown }).id);
      return { id, body, line, metadata, labels: stream, atMs: Number(nanoseconds.slice(0, 13)) };
    });
  });
}

const toSeconds = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** A Loki: it stores the valid lines of a request, answers 400 with one reason if others are not, and drops equal lines. */
export async function startLokiReceiver({
  authorization,
  tenant,
  maxLineBytes = Number.POSITIVE_INFINITY,
  oldestMs = 0,
  maxBehindMs = Number.POSITIVE_INFINITY,
  takesMetadata = true,
}: LokiOptions = {}): Promise<Receiver & { readonly entries: readonly LokiEntry[] }> {
  const newest = new Map<string, number>();
  const lines = new Set<string>();
  const entries: LokiEntry[] = [];

  function judge({ labels, line, atMs }: LokiEntry): string | null {
    const stream = JSON.stringify(labels);
    if (atMs < oldestMs)
      return `entry for stream '${stream}' has timestamp too old: ${toSeconds(atMs)}, oldest acceptable timestamp is: ${toSeconds(oldestMs)}`;
    if (Buffer.byteLength(line) > maxLineBytes)
      return `Max entry size '${maxLineBytes}' bytes exceeded for stream '${stream}' while adding an entry with length '${line.length}' bytes`;
    const behind = (newest.get(stream) ?? atMs) - maxBehindMs;
    if (atMs < behind)
      return `entry with timestamp ${new Date(atMs).toISOString()} ignored, reason: 'entry too far behind, entry timestamp is: ${toSeconds(atMs)}, oldest acceptable timestamp is: ${toSeconds(behind)}',\ntotal ignored: 1 out of 1 for stream: ${stream}`;
    return null;
  }

  const receiver = await startReceiver({
    failure: (_status, reason = "failure") => reason,
    answer({ path, headers }) {
      if (authorization !== undefined && headers.authorization !== authorization)
        return { status: 401, body: "invalid username or token" };
      if (tenant !== undefined && headers["x-scope-orgid"] !== tenant)
        return { status: 401, body: "no org id" };
      if (path !== "/loki/api/v1/push") return { status: 404, body: "404 page not found" };
      return headers["content-type"] === "application/json" ? null : { status: 400, body: "snappy: corrupt" };
    },
    read: ({ text }) => readEntries(JSON.parse(text) as Push, takesMetadata),
    take(events, { refused, postponed, store }) {
      if (events.some(({ id }) => postponed.has(id)))
        return { status: 503, body: "at least 2 live replicas" };
      let failure: string | null = null;
      for (const entry of events as readonly LokiEntry[]) {
        const reason = refused.has(entry.id) ? "entry is invalid" : judge(entry);
        if (reason !== null) {
          failure = reason;
          continue;
        }
        const stream = JSON.stringify(entry.labels);
        newest.set(stream, Math.max(newest.get(stream) ?? 0, entry.atMs));
        const same = `${stream} ${entry.atMs} ${entry.line}`;
        if (lines.has(same)) continue;
        lines.add(same);
        entries.push(entry);
        store(entry);
      }
      return failure === null ? { status: 204, body: "" } : { status: 400, body: failure };
    },
  });
  return Object.assign(receiver, { entries });
}
