import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

interface JiraAlert {
  readonly alias: string;
  readonly priority: string;
  count: number;
  status: "open" | "acknowledged" | "closed";
  readonly notes: string[];
}

const BASE = "/jsm/ops/integration/v2/alerts";
const ACTS = { close: "closed", acknowledge: "acknowledged", notes: null } as const;

/**
 * A server that answers as the Integration Events API is documented: a wrong key is refused, everything valid is accepted
 * before it is processed, an open alias is counted, and an identifier is an id unless `identifierType` says alias.
 */
export async function startOperationsServer(key: string) {
  const alerts: JiraAlert[] = [];
  const faults: number[] = [];
  const open = (alias: string) => alerts.find((one) => one.alias === alias && one.status !== "closed");

  function create({ alias, priority }: Record<string, string>): void {
    const known = open(alias ?? "");
    if (known === undefined)
      alerts.push({ alias: alias ?? "", priority: priority ?? "P3", count: 1, status: "open", notes: [] });
    else known.count += 1;
  }

  function handle(method: string, url: URL, body: Record<string, string>): number {
    const [, id, act] = /^\/([^/]+)\/([a-z]+)$/.exec(url.pathname.slice(BASE.length)) ?? [];
    if (!url.pathname.startsWith(BASE)) return 404;
    if (method !== "POST") return 405;
    if (id === undefined && url.pathname === BASE) {
      create(body);
      return 202;
    }
    if (act === undefined || !(act in ACTS)) return 404;
    // The request is accepted even if there is no such alert.
    const alert =
      url.searchParams.get("identifierType") === "alias" ? open(decodeURIComponent(id ?? "")) : undefined;
    if (alert === undefined) return 202;
    if (body["note"] !== undefined) alert.notes.push(body["note"]);
    alert.status = ACTS[act as keyof typeof ACTS] ?? alert.status;
    return 202;
  }

  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const isKnown = request.headers.authorization === `GenieKey ${key}`;
      const fault = faults.shift();
      const url = new URL(request.url ?? "", "http://x");
      const status = isKnown ? (fault ?? handle(request.method ?? "", url, JSON.parse(body))) : 401;
      const answer = {
        result: status === 202 ? "Request will be processed" : "Refused",
        took: 0.1,
        requestId: "1",
      };
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jsm/ops/integration`,
    alerts,
    /** Statuses of the next answers. A request that is answered so is not processed. */
    faults,
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
