import type { FastifyInstance } from "fastify";
import { OPERATIONS } from "#operations/index.ts";
import { addOperations } from "../../operations.ts";
import { addAlertStream } from "./alert-stream.ts";
import { addAlertsAtom } from "./alerts-atom.ts";
import type { ApiDeps } from "./api-deps.ts";
import { addEtag } from "./etag.ts";

/** The native API: alerts, silences, trends, rules, spikes, coverage, gaps, deliveries, zones, status. */
export function addNativeApi(app: FastifyInstance, deps: ApiDeps): void {
  app.addHook("onSend", async (request, reply, payload) =>
    request.routeOptions.url?.startsWith("/api/v1/") === true ? addEtag(request, reply, payload) : payload,
  );
  addOperations(app, OPERATIONS, deps);
  addAlertStream(app, deps);
  addAlertsAtom(app, deps);
}
