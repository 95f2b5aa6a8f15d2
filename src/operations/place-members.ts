import type { z } from "zod";
import type { OperationAddress } from "#model/operation-address.ts";
import type { Operation } from "./operation.ts";

/** Members of an input and their schemas. */
export type Shape = Record<string, z.ZodType>;

/** Returns where the members of an operation's input are: in the path, in the query, or in the body. */
export function placeMembers({ http: [method, path], input, query: inQuery = [] }: Operation): {
  readonly params: Shape;
  readonly query: Shape;
  readonly body: Shape;
} {
  const inPath = new Set(path.match(/(?<=:)\w+/g));
  const isBodiless = method === "GET" || method === "DELETE";
  const places = { params: {} as Shape, query: {} as Shape, body: {} as Shape };
  for (const [name, schema] of Object.entries(input.shape as Shape)) {
    const place = inPath.has(name) ? "params" : isBodiless || inQuery.includes(name) ? "query" : "body";
    places[place][name] = schema;
  }
  return places;
}

/** Returns where a client sends the operation. */
export function addressOf(operation: Operation): OperationAddress {
  const [method, path] = operation.http;
  return { method, path, query: Object.keys(placeMembers(operation).query) };
}
