import { type EdgeClient } from "#adapters/edge/edge-client.ts";
import { EdgeError } from "#adapters/edge/edge-error.ts";

/** Receives how the platform answered for a zone. */
export interface EdgeObserver {
  answered(zoneId: number): Promise<void>;
  refused(zoneId: number, code: string): Promise<void>;
}

/** Returns the same client with its event requests observed. Only failures of the access key count as refused. */
export function watchEdge(edge: EdgeClient, observer: EdgeObserver): EdgeClient {
  async function watched<T>(zoneId: number, call: Promise<T>): Promise<T> {
    try {
      const result = await call;
      await observer.answered(zoneId);
      return result;
    } catch (thrown) {
      if (isRefusal(thrown)) await observer.refused(zoneId, thrown.code);
      throw thrown;
    }
  }
  return {
    ...edge,
    searchEventLogs: (params, signal) => watched(params.shieldZoneId, edge.searchEventLogs(params, signal)),
    readEventLogs: (params, signal) => watched(params.shieldZoneId, edge.readEventLogs(params, signal)),
  };
}

function isRefusal(thrown: unknown): thrown is EdgeError {
  return thrown instanceof EdgeError && ["EDGE_UNAUTHORIZED", "EDGE_FORBIDDEN"].includes(thrown.code);
}
