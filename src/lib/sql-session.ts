import { readSqlState, toError } from "./errors.ts";
import { type Asking, watchSilence } from "./sql-silence.ts";

/**
 * The settings that the code relies on in every session, whatever the server, the database or the role has set: how values
 * are written as text, how texts are read, where tables are found, and what a transaction sees.
 */
export const SESSION_SETTINGS = {
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  search_path: "public",
  standard_conforming_strings: "on",
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  transform_null_equals: "off",
  array_nulls: "on",
} as const;

/** Limits in ms that the driver would send at the start of the connection. */
const LIMITS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] as const;

const PROBE_MS = 3_000;
/** Longest wait for the answer to a statement before the server is asked on a new connection, and for the answer to that. */
const SILENT_MS = 15_000;
/** The server is not there, or takes connections and answers nothing. */
const NO_ANSWER = /timeout|^E(TIMEDOUT|(HOST|NET)(UNREACH|DOWN))/;
/** A standby, or a role or server that allows reading only. */
const IS_READ_ONLY = `current_setting('transaction_read_only') = 'on' as "isReadOnly"`;
/** The host of each address with several that was the primary last. */
const primaries = new Map<string, SqlHost>();

/** Eight hexadecimal digits that grow with each promotion of a standby. */
export const READ_TIMELINE = "select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline";

type Settings = Readonly<Record<string, string>>;

interface Client {
  readonly host: string;
  readonly port: number;
  connect(): Promise<unknown>;
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
  on(event: "error", listener: () => void): unknown;
}

/**
 * Returns a class of clients that set the session after they have connected, in one statement. Poolers such as
 * PgBouncer refuse settings at the start of a connection.
 */
// biome-ignore lint/suspicious/noExplicitAny: TypeScript requires this signature of a class that extends a parameter.
export function withSession<Base extends new (...given: any[]) => Client>(Base: Base, more: Settings = {}) {
  return class extends Base {
    readonly #statement: string;
    readonly #config: Readonly<Record<string, unknown>>;
    readonly #hosts: readonly SqlHost[];
    readonly #mustWrite: boolean;

    // biome-ignore lint/suspicious/noExplicitAny: see above.
    constructor(...given: any[]) {
      const config = (given[0] ?? {}) as Readonly<Record<string, unknown>>;
      const limits = LIMITS.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]]]));
      const withheld = Object.fromEntries(LIMITS.map((name) => [name, undefined]));
      super({ ...config, ...withheld, options: undefined });
      this.#config = config;
      this.#hosts = listSqlHosts(config["connectionString"]);
      this.#mustWrite =
        this.#hosts.length > 1 || String(config["connectionString"]).includes("target_session_attrs=");
      const settings = { ...SESSION_SETTINGS, ...(Object.fromEntries(limits) as Settings), ...more };
      const calls = Object.entries(settings).map(
        ([name, value]) => `set_config('${name}', '${value}', false)`,
      );
      // The owner listens only once the client is ready. Until then, a connection that dies must not end the process.
      this.on("error", () => undefined);
      this.#statement = `select ${IS_READ_ONLY}, ${calls.join(", ")}`;
    }

    // The pool calls with a callback, everybody else without.
    override async connect(callback?: (error: unknown) => void): Promise<void> {
      if (callback === undefined) return this.#connect();
      let failure: unknown = null;
      try {
        await this.#connect();
      } catch (thrown) {
        failure = thrown;
      }
      callback(failure);
    }

    async #connect(): Promise<void> {
      const url = String(this.#config["connectionString"]);
      // The driver reads both when it connects.
      if (this.#hosts.length > 1) Object.assign(this, primaries.get(url) ?? (await this.#findPrimary(url)));
      try {
        await super.connect();
        this.#watch(url);
        const { rows } = await this.query(this.#statement);
        if (this.#mustWrite && rows[0]?.["isReadOnly"] === true)
          throw new Error(`${this.host}:${this.port} accepts no writes`);
      } catch (thrown) {
        primaries.delete(url);
        await this.end().catch(() => undefined);
        throw thrown;
      }
    }

    #watch(url: string): void {
      // The driver's types lack these members.
      const client = this as unknown as Asking;
      // A name may lead to another server by now.
      const host = client.connection.stream.remoteAddress;
      const port = String(this.port);
      const afterMs = Number(this.#config["silentAfterMs"] ?? SILENT_MS);
      const own = host === undefined ? url : withSqlHost(url, { host, port });
      const isAnswering = async () => {
        const answers = await this.#answers(own, afterMs);
        if (!answers) primaries.delete(url);
        return answers;
      };
      watchSilence(client, { server: `${host ?? this.host}:${port}`, afterMs, isAnswering });
    }

    /** Returns whether the server answers a new connection, whatever the answer is. */
    async #answers(connectionString: string, connectionTimeoutMillis: number): Promise<boolean> {
      const probe = new Base({
        ...this.#config,
        options: undefined,
        connectionString,
        connectionTimeoutMillis,
      });
      probe.on("error", () => undefined);
      try {
        await probe.connect();
        return true;
      } catch (thrown) {
        const { code = "", message } = toError(thrown) as NodeJS.ErrnoException;
        return readSqlState(thrown) !== null || !NO_ANSWER.test(code || message);
      } finally {
        await probe.end().catch(() => undefined);
      }
    }

    /**
     * Returns a host that accepts writes, as `target_session_attrs=read-write` of libpq. A former primary that is back and
     * follows no one accepts them too: of several hosts, it is the one that was promoted last.
     */
    async #findPrimary(url: string): Promise<SqlHost> {
      const probes = await Promise.allSettled(this.#hosts.map((host) => this.#probe(url, host)));
      const found = probes.flatMap((probe) => (probe.status === "fulfilled" ? [probe.value] : []));
      const [newest] = found.sort((one, other) => other.timeline - one.timeline);
      if (newest === undefined) throw probes.find((probe) => probe.status === "rejected")?.reason;
      primaries.set(url, newest.host);
      return newest.host;
    }

    /** @throws {Error} if the host cannot be reached or accepts no writes. */
    async #probe(url: string, host: SqlHost) {
      const probe = new Base({
        ...this.#config,
        options: undefined,
        connectionString: withSqlHost(url, host),
        connectionTimeoutMillis: PROBE_MS,
      });
      probe.on("error", () => undefined);
      try {
        await probe.connect();
        const { rows } = await probe.query(`select ${IS_READ_ONLY}`);
        if (rows[0]?.["isReadOnly"] !== false) throw new Error(`${host.host}:${host.port} accepts no writes`);
        // A server without WAL of its own has no timeline.
        const known = await probe.query(READ_TIMELINE).catch(() => ({ rows: [] }));
        return { host, timeline: Number.parseInt(String(known.rows[0]?.["timeline"]), 16) || 0 };
      } finally {
        await probe.end().catch(() => undefined);
      }
    }
  };
}

export interface SqlHost {
  /** A name, an address, or the folder of a socket. */
  readonly host: string;
  readonly port: string;
}

/** Returns the hosts of an address with several, as libpq's `host=a,b&port=5432,5433`; none for one host. */
export function listSqlHosts(databaseUrl: unknown): readonly SqlHost[] {
  const url = typeof databaseUrl === "string" ? URL.parse(databaseUrl) : null;
  const hosts = url?.searchParams.get("host")?.split(",") ?? [];
  if (hosts.length < 2) return [];
  const ports = url?.searchParams.get("port")?.split(",") ?? [];
  return hosts.map((host, index) => ({ host, port: ports[index] ?? ports[0] ?? "5432" }));
}

/** Returns the address with this host only. */
function withSqlHost(databaseUrl: string, { host, port }: SqlHost): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("host", host);
  url.searchParams.set("port", port);
  return url.href;
}
