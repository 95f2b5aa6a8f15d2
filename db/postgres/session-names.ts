/**
 * Application name of the sessions that copy events, which are those of jobs and of commands. Requests of clients
 * have a pool and a name of their own.
 */
export const WORK_SESSIONS = "longwatch";
export const COMMAND_SESSIONS = "longwatch command";
