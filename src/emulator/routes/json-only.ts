/** The one media type of the pull zone, DNS zone and container operations (platform API spec 4.2 to 4.5). */
export const JSON_ONLY = /^application\/json\s*(;|$)/i;
