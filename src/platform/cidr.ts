import { isIP } from 'node:net';
import { ipv6Bytes } from './provider-url.js';

/** Parses `TRUSTED_PROXIES`: networks or plain addresses, separated by commas or spaces. Null when one is malformed. */
export function parseCidrList(text: string): string[] | null {
  const networks: string[] = [];
  for (const entry of text.split(/[\s,]+/)) {
    if (entry === '') continue;
    const network = parseCidr(entry);
    if (network === null) return null;
    networks.push(network);
  }
  return networks;
}

function parseCidr(entry: string): string | null {
  const slash = entry.indexOf('/');
  const address = slash === -1 ? entry : entry.slice(0, slash);
  const version = isIP(address);
  // A zone (fe80::1%eth0) is a property of this host's interfaces, not of a network: net.BlockList rejects it.
  if (version === 0 || address.includes('%')) return null;
  const longest = version === 4 ? 32 : 128;
  if (slash === -1) return `${address}/${longest}`;
  const prefix = entry.slice(slash + 1);
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= longest ? `${address}/${Number(prefix)}` : null;
}

/** False for an address inside of a network, such as 10.1.2.3/8, which Postgres does not take as a `cidr`. */
export function isNetwork(cidr: string): boolean {
  const [address, prefix] = cidr.split('/') as [string, string];
  const bytes = isIP(address) === 4 ? address.split('.').map(Number) : ipv6Bytes(address);
  return bytes.every((byte, i) => (byte & (0xff >> Math.min(8, Math.max(0, Number(prefix) - 8 * i)))) === 0);
}
