import { BlockList, isIP } from 'node:net';
import { Logger } from '@nestjs/common';

/** How client addresses are kept: as they are, cut to a /24 or /48, or not at all. */
export type ClientDetail = 'full' | 'truncated' | 'none';

/** Where a reverse proxy of this installation usually is: loopback, private networks (RFC 1918, RFC 4193). */
const nearby = new BlockList();
nearby.addSubnet('127.0.0.0', 8, 'ipv4');
nearby.addSubnet('10.0.0.0', 8, 'ipv4');
nearby.addSubnet('172.16.0.0', 12, 'ipv4');
nearby.addSubnet('192.168.0.0', 16, 'ipv4');
nearby.addAddress('::1', 'ipv6');
nearby.addSubnet('fc00::', 7, 'ipv6');

/** Once per process. */
let isProxyReported = false;

function reportProxy(address: string): void {
  if (isProxyReported || !includes(nearby, address)) return;
  isProxyReported = true;
  new Logger('Config').warn(
    `${address} sends X-Forwarded-For, but TRUSTED_PROXIES does not contain this address. All clients behind it count as ` +
      'one, in the request log and where look-ups of unknown keys are limited. If it is your proxy, add it.',
  );
}

function includes(list: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** Finds the client's own address behind the proxies this installation trusts. */
export class ClientAddress {
  private readonly trusted = new BlockList();

  /** @param trustedProxies networks in CIDR form */
  constructor(
    trustedProxies: readonly string[],
    private readonly detail: ClientDetail,
  ) {
    for (const network of trustedProxies) {
      const [address, prefix] = network.split('/') as [string, string];
      this.trusted.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4');
    }
  }

  /**
   * The rightmost address of `X-Forwarded-For` that no trusted proxy wrote about itself; the peer's own when the peer is
   * not trusted, for then the header is the client's invention.
   *
   * @returns null when there is none worth keeping
   */
  of(peer: string | undefined, forwardedFor: string | undefined): string | null {
    if (this.detail === 'none' || peer === undefined) return null;
    let address = plain(peer);
    if (forwardedFor !== undefined && !includes(this.trusted, address)) reportProxy(address);
    else if (forwardedFor !== undefined) {
      for (const hop of forwardedFor.split(',').reverse()) {
        const next = plain(hop.trim());
        if (isIP(next) === 0) break;
        address = next;
        if (!includes(this.trusted, address)) break;
      }
    }
    return isIP(address) === 0 ? null : keptAddress(address, this.detail);
  }
}

/** An address as it may be kept; null if it may not. */
export function keptAddress(address: string, detail: ClientDetail): string | null {
  if (detail === 'none') return null;
  return detail === 'truncated' ? truncate(address) : address;
}

/** By what to count those who guess: an IPv4 address, the /64 of an IPv6 one, for whoever has one address of it has all. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const rest = tail?.split(':').filter((group) => group !== '') ?? [];
  const all = [...groups, ...Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0'), ...rest];
  return all.slice(0, 4).join(':');
}

/** Without the IPv4-in-IPv6 form of a dual-stack listener (RFC 4291 2.5.5.2) and without a zone. */
function plain(address: string): string {
  const bare = address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
  const zone = bare.indexOf('%');
  return zone === -1 ? bare : bare.slice(0, zone);
}

function truncate(address: string): string {
  if (isIP(address) === 4) return address.replace(/\.\d+$/, '.0');
  const [head = ''] = address.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  return `${groups.slice(0, 3).join(':')}::`;
}
