/**
 * User agents of tools that search sites for weaknesses, from their public documentation and the core rule set's
 * `scanners-user-agents.data`. Libraries that ordinary programs use as well, such as curl, are left out.
 */
const AGENTS =
  /\b(?:nikto|sqlmap|nuclei|wpscan|wfuzz|ffuf|fuzz faster|feroxbuster|gobuster|dirbuster|dirb|dirsearch|zgrab|masscan|nmap|zmap|acunetix|netsparker|invicti|nessus|openvas|qualys|burp ?suite|burpcollaborator|owasp zap|zaproxy|arachni|w3af|skipfish|vega|havij|commix|jaeles|joomscan|droopescan|whatweb|xsstrike|dalfox|paros|webshag|wapiti|censysinspect|expanse|internetmeasurement|l9explore|leakix|httpx|katana|gospider|fimap|grabber|metis|jorgee|morfeus|zmeu|muieblackcat|absinthe|bsqlbf|sqlninja|pangolin|brutus|hydra|dotdotpwn|struts-pwn)\b/i;

/** Returns whether a user agent names such a tool. */
export function isToolAgent(ua: string): boolean {
  return AGENTS.test(ua.slice(0, 500));
}

const BOT = /bot|crawl|spider|monitor/i;
const BROWSER = /^(?:Mozilla|Opera)\/\d/;

/** Returns whether a user agent names itself a bot. */
export function isBotAgent(ua: string): boolean {
  return BOT.test(ua.slice(0, 500));
}

/** Returns whether a user agent is a program's. Every browser begins alike. Crawlers do, too, and name themselves. */
export function isProgramAgent(ua: string): boolean {
  return !BROWSER.test(ua) || isBotAgent(ua);
}

/** Returns whether a rule of the core rule set finds tools: 913100 to 913199, by their user agents, headers and paths. */
export function isToolRule(ruleId: string): boolean {
  return /^9131\d\d$/.test(ruleId);
}
