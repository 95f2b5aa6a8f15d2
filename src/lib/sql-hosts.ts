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
export function withSqlHost(databaseUrl: string, { host, port }: SqlHost): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("host", host);
  url.searchParams.set("port", port);
  return url.href;
}
