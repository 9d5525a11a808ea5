import { userInfo } from 'node:os';

/** Who makes a change. */
export interface Actor {
  /** `admin-token`, `token:<name>`, `sso:<user>`, `cli:<user of the operating system>` or `start`. */
  name: string;
  /** Client address of an admin request; null for commands and the start. */
  address: string | null;
}

/** The first start of a gateway, which creates the first team and key. */
export const STARTING: Actor = { name: 'start', address: null };

/** The actor of an admin request. @param address the client's address, behind trusted proxies */
export function adminAt(address: string | null): Actor {
  return { name: 'admin-token', address };
}

/** The operating-system user who runs a command. */
export function commandUser(): Actor {
  return { name: `cli:${userName()}`, address: null };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // Containers often run with a user ID that has no account.
    return String(process.getuid?.() ?? 'unknown');
  }
}
