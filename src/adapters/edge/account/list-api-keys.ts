import { ApiKeyList, ApiKeyListQuery } from "../contract/api-key-list.ts";
import { checkRequest } from "../transport/check-request.ts";
import { type EdgeCall, WITH_BODY } from "../transport/edge-call.ts";
import { readAnswer } from "../transport/read-answer.ts";
import type { EdgeTransport } from "../transport/transport.ts";

/** Returns one page of the account's API keys; platform API spec 4.1. The answer holds credentials. */
export async function listApiKeys(
  transport: EdgeTransport,
  params: ApiKeyListQuery = {},
  signal?: AbortSignal,
): Promise<ApiKeyList> {
  const { page, perPage } = checkRequest("list-api-keys", ApiKeyListQuery, params);
  const path = `/apikey?page=${page}&perPage=${perPage}`;
  const call: EdgeCall = {
    operation: "list-api-keys",
    method: "GET",
    path,
    expects: "json",
    successes: WITH_BODY,
  };
  return readAnswer(ApiKeyList, call, await transport.request(call, signal));
}
