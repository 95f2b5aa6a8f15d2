import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Where a proxy sends what it gets, and what it does with the answer. */
interface Passed {
  /** Returns the path at the service; null: nothing is there, and the answer is a 404. */
  readonly toPath?: (path: string) => string | null;
  /** Returns true if the service is not to answer. */
  readonly answer?: (response: ServerResponse) => boolean;
  /** The connection is cut after so many bytes of an answer. */
  readonly cutAfter?: number;
}

/** Returns the origin of a proxy in front of the service at `url`. */
export async function startProxy(
  url: string,
  { toPath = (path) => path, answer = () => false, cutAfter }: Passed,
): Promise<string> {
  const proxy = createServer((asked, response) => {
    const { url: path = "", method = "GET", headers } = asked;
    if (answer(response)) return;
    const there = toPath(path);
    if (there === null) {
      response.writeHead(404).end();
      return;
    }
    const passed = request(`${url}${there}`, { method, headers }, (got) => {
      response.writeHead(got.statusCode ?? 502, got.headers);
      let left = cutAfter ?? Number.POSITIVE_INFINITY;
      got.on("data", (chunk: Buffer) => {
        if (left > 0) response.write(chunk.subarray(0, left), () => left <= 0 && response.destroy());
        left -= chunk.length;
      });
      // An answer that is cut has no end, however late its last bytes are written.
      got.on("end", () => left > 0 && response.end());
    });
    asked.pipe(passed);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  await once(proxy, "listening");
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}
