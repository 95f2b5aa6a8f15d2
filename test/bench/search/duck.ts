import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

const COLUMNS = `occurred_at timestamp, zone_id integer, log_id varchar, route varchar, feature varchar, rule_id varchar,
  ip varchar, ja4 varchar, ua varchar, url varchar, asn varchar, country varchar, action varchar, message varchar`;

export type DuckRow = Record<string, unknown>;

export interface Duck {
  addDay(file: string): Promise<void>;
  finish(): Promise<void>;
  query(text: string): Promise<DuckRow[]>;
  close(): void;
}

/** The same events in a DuckDB of its own on disk, with all cores of the machine, as Postgres has them. */
export async function openDuck(file: string): Promise<Duck> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  await connection.run("set timezone = 'UTC'");
  await connection.run(`create table if not exists waf_events (${COLUMNS})`);
  return {
    addDay: (csv) => loadDay(connection, csv),
    finish: async () => void (await connection.run("checkpoint")),
    query: async (text) => (await connection.runAndReadAll(text)).getRowObjectsJS(),
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function loadDay(connection: DuckDBConnection, csv: string): Promise<void> {
  const columns = COLUMNS.split(",").map((column) => column.trim().split(" "));
  const types = columns.map(([name, type]) => `'${name}': '${type?.toUpperCase()}'`).join(", ");
  await connection.run(`insert into waf_events select * from read_csv('${csv}', header = false, quote = '"', escape = '"',
    auto_detect = false, delim = ',', allow_quoted_nulls = false, columns = {${types}})`);
}
