import type { Config } from "#config/config.ts";
import type { Log } from "#lib/log.ts";
import type { EdgeObserver } from "./watch-edge.ts";

/** Returns a function that reads the file of the access key again, and logs a change. */
export function createKeyReader({ rereadKey }: Pick<Config, "rereadKey">, log: Pick<Log, "info" | "error">) {
  return (): void => {
    const read = rereadKey();
    if (read === "changed") log.info({ variable: "EDGE_API_KEY_FILE" }, "access key read again");
    else if (read !== "same")
      log.error({ variable: "EDGE_API_KEY_FILE", mistake: read.mistake }, "previous access key kept");
  };
}

/** Returns the same observer, which reads the key again after a refusal: the file may hold a new key by now. */
export function rereadWhenRefused(observer: EdgeObserver, reread: () => void): EdgeObserver {
  return {
    answered: (zoneId) => observer.answered(zoneId),
    refused(zoneId, code) {
      reread();
      return observer.refused(zoneId, code);
    },
  };
}
