import type { Backlog } from "#faces/http/backlog.ts";
import { createHttp, type HttpOptions } from "#faces/http/http.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { createLog } from "#lib/log.ts";
import { atEnd } from "#test/support/at-end.ts";

export const LIMITS = {
  perKeyAndMinute: 10_000,
  perAddressAndMinute: 10_000,
  perKey: { read: 4, export: 2 },
};

/** A listening server, what it logged, and a way in for routes of the test. */
/** The state of a service without zones and channels. */
export const EMPTY_BACKLOG: Backlog = {
  service: [
    {
      spikes_open: 0,
      notifications_pending: 0,
      channels_down: 0,
      pseudonym_key_missing: false,
    },
  ],
  accounts: [{ edge_budget_tokens: Number.NaN, edge_paused: false, edge_key_refused: false }],
  alerts: [],
  conditions: [],
  channels: [],
  destinations: [],
  archives: [],
  archiveFiles: [],
  zones: [],
};

export async function startHttp(
  options: Partial<HttpOptions> = {},
  extend: (app: Awaited<ReturnType<typeof createHttp>>) => void = () => {},
) {
  const lines: string[] = [];
  const metrics = createMetrics();
  const app = await createHttp({
    checks: [],
    metrics,
    readBacklog: async () => EMPTY_BACKLOG,
    log: createLog({ level: "debug", stream: { write: (line) => lines.push(line) } }),
    authenticate: async () => null,
    routes: [],
    areMetricsPublic: true,
    limits: LIMITS,
    trustedProxies: [],
    writeSecurityEvent: async () => undefined,
    ...options,
  });
  extend(app);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  atEnd(() => app.close());
  return { app, url, lines, metrics, port: Number(new URL(url).port) };
}
