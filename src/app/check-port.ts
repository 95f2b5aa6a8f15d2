import { once } from "node:events";
import { createServer } from "node:net";
import type { Config } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { readRuntimeFile } from "./runtime-file.ts";

type Place = Pick<Config, "dataDir"> & { readonly http: Pick<Config["http"], "host" | "port"> };

/**
 * Listens on the port of HTTP and stops at once, so that a start that must fail does so before Postgres is started.
 * @throws {UsageError} if the port is taken, or the host is not an address of this machine
 */
export async function checkPort(config: Place): Promise<void> {
  const { host, port } = config.http;
  if (port === 0) return;
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen({ host, port }), "listening");
  } catch (thrown) {
    throw explainListenFailure(thrown, config);
  }
  await new Promise((resolve) => server.close(resolve));
}

/** Returns the failure as a mistake of the settings if the settings caused it. */
export function explainListenFailure(thrown: unknown, { http, dataDir }: Place): unknown {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  if (["ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL"].includes(code))
    return new UsageError([`LONGWATCH_HOST: ${http.host}: must be an address of this machine`]);
  if (code === "EACCES")
    return new UsageError([`LONGWATCH_PORT: ${http.port}: must be a port that this user may listen on`]);
  if (code !== "EADDRINUSE") return thrown;
  const running = readRuntimeFile(dataDir);
  const isOurs = URL.parse(running?.httpUrl ?? "")?.port === String(http.port);
  const who = isOurs ? `the service of process ${running?.pid}` : "another program";
  return new UsageError([`LONGWATCH_PORT: ${http.port}: must be free: ${who} listens there`]);
}
