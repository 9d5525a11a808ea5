import { userInfo } from 'node:os';

/** Who makes a change. */
export interface Actor {
  /** `admin-token`, `cli:<user of the operating system>` or `start`. */
  name: string;
  /** Where an admin call came from; null where there is no such place. */
  address: string | null;
}

/** The first start of a gateway, which makes the first team and key. */
export const STARTING: Actor = { name: 'start', address: null };

/** Whoever holds the admin token. @param address the client's own, behind trusted proxies */
export function adminAt(address: string | null): Actor {
  return { name: 'admin-token', address };
}

/** Whoever runs a command. */
export function commandUser(): Actor {
  return { name: `cli:${userName()}`, address: null };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // Containers are often run under a number that no account has.
    return String(process.getuid?.() ?? 'unknown');
  }
}
