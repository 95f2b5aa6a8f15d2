/** The one media type of the pull zone and DNS zone operations (platform API spec 4.2 and 4.3). */
export const JSON_ONLY = /^application\/json\s*(;|$)/i;

/**
 * The three media types of the search, export and container operations. `application/*+json` is accepted literally too,
 * because a published client sends it.
 */
export const ANY_JSON = /^(application\/json|text\/json|application\/[\w.*-]+\+json)\s*(;|$)/i;
