/**
 * What the sessions call themselves that copy events: of the jobs, and of commands. Questions of clients have a pool and
 * a name of their own.
 */
export const WORK_SESSIONS = "longwatch";
export const COMMAND_SESSIONS = "longwatch command";
