/** The operations on the account: API keys, hostnames, DNS zones and applications; platform API spec 4.1 to 4.6. */

import { z } from "zod";
import {
  ApiKeyList,
  ApiKeyListQuery,
  DnsAvailabilityRequest,
  DnsAvailabilityResponse,
  HostnameKeyTypeRequest,
} from "./contract/account.ts";
import {
  ApplicationUpdateRequest,
  ApplicationUpdateResponse,
  ContainerTemplateRequest,
  ContainerTemplateResponse,
  VolumeInstancesDeletion,
} from "./contract/containers.ts";
import { Int32Id } from "./contract/values.ts";
import { asWritten, checkRequest, type EdgeCall, PathText, toSegment, WITH_BODY } from "./transport/call.ts";
import { readAnswer } from "./transport/exchange.ts";
import type { EdgeTransport } from "./transport/transport.ts";

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

type List = (params: ApiKeyListQuery, signal?: AbortSignal) => Promise<ApiKeyList>;

/**
 * Yields the pages of the key list from `params.page` (1 when unset) on, until HasMoreItems is false or a page is
 * empty.
 */
export async function* apiKeyPages(
  list: List,
  params: ApiKeyListQuery,
  signal?: AbortSignal,
): AsyncGenerator<ApiKeyList, void, undefined> {
  for (let page = params.page ?? 1; ; page++) {
    const result = await list({ ...params, page }, signal);
    yield result;
    if (!result.HasMoreItems || result.Items.length === 0) return;
  }
}

const HostnameKeyType = z.strictObject({ pullZoneId: Int32Id, request: asWritten(HostnameKeyTypeRequest) });

/** Changes the private key type of a hostname; platform API spec 4.2. Any 2xx is success, usually without a body. */
export async function setHostnameKeyType(
  transport: EdgeTransport,
  params: { pullZoneId: number; request: HostnameKeyTypeRequest },
  signal?: AbortSignal,
): Promise<void> {
  const { pullZoneId, request } = checkRequest("set-hostname-key-type", HostnameKeyType, params);
  await transport.request(
    {
      operation: "set-hostname-key-type",
      method: "POST",
      path: `/pullzone/${pullZoneId}/updatePrivateKeyType`,
      body: request,
      expects: "nothing",
    },
    signal,
  );
}

/** Returns whether a DNS zone name is still free, null if the platform does not say; platform API spec 4.3. A POST that changes nothing. */
export async function checkDnsZone(
  transport: EdgeTransport,
  params: DnsAvailabilityRequest,
  signal?: AbortSignal,
): Promise<DnsAvailabilityResponse> {
  const body = checkRequest("check-dns-zone", DnsAvailabilityRequest, params);
  const path = "/dnszone/checkavailability";
  const call: EdgeCall = {
    operation: "check-dns-zone",
    method: "POST",
    path,
    body,
    isReadOnly: true,
    expects: "json",
    mayBeEmpty: true,
  };
  return readAnswer(DnsAvailabilityResponse, call, await transport.request(call, signal));
}

const AddedContainer = z.strictObject({ appId: PathText, request: asWritten(ContainerTemplateRequest) });

/**
 * Adds a container template to an application; platform API spec 4.4. Only a 429 is retried, because a second copy
 * would stay.
 */
export async function addContainer(
  transport: EdgeTransport,
  params: { appId: string; request: ContainerTemplateRequest },
  signal?: AbortSignal,
): Promise<ContainerTemplateResponse> {
  const { appId, request } = checkRequest("add-container", AddedContainer, params);
  const path = `/mc/apps/${toSegment(appId)}/containers`;
  const call: EdgeCall = { operation: "add-container", method: "POST", path, body: request, expects: "json" };
  return readAnswer(ContainerTemplateResponse, call, await transport.request(call, signal));
}

const UpdatedApplication = z.strictObject({ appId: PathText, request: asWritten(ApplicationUpdateRequest) });

/**
 * Replaces an application's whole configuration; platform API spec 4.5. Members that the request leaves out are
 * reset.
 */
export async function updateApplication(
  transport: EdgeTransport,
  params: { appId: string; request: ApplicationUpdateRequest },
  signal?: AbortSignal,
): Promise<ApplicationUpdateResponse> {
  const { appId, request } = checkRequest("update-application", UpdatedApplication, params);
  const path = `/mc/apps/${toSegment(appId)}`;
  const call: EdgeCall = {
    operation: "update-application",
    method: "PUT",
    path,
    body: request,
    expects: "json",
  };
  return readAnswer(ApplicationUpdateResponse, call, await transport.request(call, signal));
}

const DeletedVolume = z.strictObject({ appId: PathText, volumeId: PathText });

/** Deletes all instances of a volume template; platform API spec 4.6. Rejected while one of them is attached. */
export async function deleteVolumeInstances(
  transport: EdgeTransport,
  params: { appId: string; volumeId: string },
  signal?: AbortSignal,
): Promise<VolumeInstancesDeletion> {
  const { appId, volumeId } = checkRequest("delete-volume-instances", DeletedVolume, params);
  const path = `/mc/apps/${toSegment(appId)}/volumes/${toSegment(volumeId)}`;
  const call: EdgeCall = { operation: "delete-volume-instances", method: "DELETE", path, expects: "json" };
  return readAnswer(VolumeInstancesDeletion, call, await transport.request(call, signal));
}
