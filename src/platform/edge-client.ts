import {
  addContainer,
  checkDnsZone,
  deleteVolumeInstances,
  listApiKeys,
  setHostnameKeyType,
  updateApplication,
} from "./account.ts";
import { listEventLogs, readEventLogs } from "./list-event-logs.ts";
import { getRecommendation, getRuleMetrics } from "./rules.ts";
import { exportEventLogs, searchEventLogs } from "./search-event-logs.ts";
import type { RequestPriority } from "./transport/call.ts";
import type { EdgeTransport } from "./transport/transport.ts";

type Operation<Params, Result> = (
  transport: EdgeTransport,
  params: Params,
  signal?: AbortSignal,
) => Promise<Result>;

/**
 * Returns the client that jobs and commands use: the eleven operations over one transport, all with the same
 * priority. Every method throws EdgeError.
 */
export function createEdgeClient(shared: EdgeTransport, priority: RequestPriority = "normal") {
  const transport: EdgeTransport = {
    ...shared,
    request: (call, signal) => shared.request({ ...call, priority }, signal),
    stream: (call, limits, signal) => shared.stream({ ...call, priority }, limits, signal),
  };
  const bind =
    <Params, Result>(operation: Operation<Params, Result>) =>
    (params: Params, signal?: AbortSignal) =>
      operation(transport, params, signal);
  return {
    listApiKeys: bind(listApiKeys),
    setHostnameKeyType: bind(setHostnameKeyType),
    checkDnsZone: bind(checkDnsZone),
    addContainer: bind(addContainer),
    updateApplication: bind(updateApplication),
    deleteVolumeInstances: bind(deleteVolumeInstances),
    searchEventLogs: bind(searchEventLogs),
    listEventLogs: bind(listEventLogs),
    readEventLogs: bind(readEventLogs),
    exportEventLogs: bind(exportEventLogs),
    getRecommendation: bind(getRecommendation),
    getRuleMetrics: bind(getRuleMetrics),
  };
}

export type EdgeClient = ReturnType<typeof createEdgeClient>;
