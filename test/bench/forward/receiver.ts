import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A process that counts the lines it is posted, like a receiver that stores them elsewhere. Sends its port to its parent. */
let lines = 0;
const server = createServer((request, response) => {
  request.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
  });
  request.on("end", () => response.writeHead(200).end(String(lines)));
}).listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(lines));
