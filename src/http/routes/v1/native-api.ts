import type { FastifyInstance } from "fastify";
import { addAlertActs } from "./alert-acts.ts";
import { addAlertStream } from "./alert-stream.ts";
import { addAlerts } from "./alerts.ts";
import { addAlertsAtom } from "./alerts-atom.ts";
import type { ApiDeps } from "./api-deps.ts";
import { addCoverage } from "./coverage.ts";
import { addDeliveries } from "./deliveries.ts";
import { addEtag } from "./etag.ts";
import { addGaps } from "./gaps.ts";
import { addRules } from "./rules.ts";
import { addSilences } from "./silences.ts";
import { addSpikes } from "./spikes.ts";
import { addStatus } from "./status.ts";
import { addTrends } from "./trends.ts";
import { addZones } from "./zones.ts";

const ROUTES: readonly ((app: FastifyInstance, deps: ApiDeps) => void)[] = [
  addAlerts,
  addAlertActs,
  addAlertStream,
  addAlertsAtom,
  addSilences,
  addTrends,
  addRules,
  addSpikes,
  addCoverage,
  addGaps,
  addDeliveries,
  addZones,
  addStatus,
];

/** The native API: alerts, silences, trends, rules, spikes, coverage, gaps, deliveries, zones, status. */
export function addNativeApi(app: FastifyInstance, deps: ApiDeps): void {
  app.addHook("onSend", async (request, reply, payload) =>
    request.routeOptions.url?.startsWith("/api/v1/") === true ? addEtag(request, reply, payload) : payload,
  );
  for (const addRoutes of ROUTES) addRoutes(app, deps);
}
