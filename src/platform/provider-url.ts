import { BlockList, isIP } from 'node:net';

/**
 * Where may a provider live? One rule for `PROVIDER_URL` and for stored providers.
 * Pure: names are not resolved here, the connector checks the address a name leads to with `addressClass`.
 */

export type ProviderUrlResult = { url: string; problem?: undefined } | { url?: undefined; problem: string };

/** `local`: plain http is fine there. `forbidden`: never a provider. `public`: https only. */
export type AddressClass = 'local' | 'forbidden' | 'public';

// Link-local addresses serve cloud instance metadata (credentials, that is): a gateway that can be pointed there
// hands the machine's identity to whoever may add a provider. RFC 3927, RFC 4291 2.5.6.
const forbidden = new BlockList();
forbidden.addSubnet('169.254.0.0', 16, 'ipv4'); // BlockList matches ::ffff:169.254.0.0/112 as well
forbidden.addSubnet('fe80::', 10, 'ipv6');
// Metadata services outside link-local space.
forbidden.addAddress('100.100.100.200', 'ipv4'); // Alibaba Cloud
forbidden.addAddress('168.63.129.16', 'ipv4'); // Azure
forbidden.addSubnet('192.0.0.0', 24, 'ipv4'); // RFC 6890; 192.0.0.192 is Oracle Cloud's
forbidden.addAddress('fd00:100::100:200', 'ipv6');
forbidden.addSubnet('fd00:ec2::', 32, 'ipv6'); // AWS: metadata and the credentials of pods
forbidden.addAddress('fd20:ce::254', 'ipv6'); // Google Cloud
forbidden.addAddress('fd00:42::42', 'ipv6'); // Scaleway
forbidden.addAddress('fd00:a9fe:a9fe::1', 'ipv6'); // Akamai (Linode)
// A relay that nobody here chose would lead on to any IPv4 address. RFC 4380.
forbidden.addSubnet('2001::', 32, 'ipv6');

/**
 * No provider has such an address either. A list of its own: an IPv6 address in which one of these may be embedded is
 * mostly an ordinary one.
 */
const unusable = new BlockList();
unusable.addSubnet('0.0.0.0', 8, 'ipv4'); // RFC 1122 3.2.1.3; connects to this machine
unusable.addAddress('::', 'ipv6');
unusable.addSubnet('224.0.0.0', 4, 'ipv4'); // multicast
unusable.addSubnet('ff00::', 8, 'ipv6');
unusable.addSubnet('fec0::', 10, 'ipv6'); // site-local, RFC 3879

const local = new BlockList();
local.addSubnet('127.0.0.0', 8, 'ipv4');
local.addSubnet('10.0.0.0', 8, 'ipv4'); // RFC 1918
local.addSubnet('172.16.0.0', 12, 'ipv4');
local.addSubnet('192.168.0.0', 16, 'ipv4');
local.addSubnet('100.64.0.0', 10, 'ipv4'); // RFC 6598, also overlay networks
local.addAddress('::1', 'ipv6');
local.addSubnet('fc00::', 7, 'ipv6'); // RFC 4193

/**
 * Networks whose addresses stand for an IPv4 address, and at which bytes that address may be. BlockList knows ::ffff:0:0/96
 * by itself. Operators choose the prefix below 64:ff9b:1::/48 themselves (RFC 8215); the places are those of RFC 6052 2.2.
 */
const TRANSLATED: readonly [network: string, prefix: number, places: readonly (readonly number[])[]][] = [
  ['::', 96, [[12, 13, 14, 15]]], // IPv4-compatible, RFC 4291 2.5.5.1
  ['::ffff:0:0:0', 96, [[12, 13, 14, 15]]], // IPv4-translated, RFC 2765 2.1
  ['64:ff9b::', 96, [[12, 13, 14, 15]]], // NAT64, RFC 6052 2.1
  [
    '64:ff9b:1::',
    48,
    [
      [6, 7, 9, 10],
      [7, 9, 10, 11],
      [9, 10, 11, 12],
      [12, 13, 14, 15],
    ],
  ],
  ['2002::', 16, [[2, 3, 4, 5]]], // 6to4, RFC 3056 2
];
const translated = TRANSLATED.map(([network, prefix, places]) => {
  const list = new BlockList();
  list.addSubnet(network, prefix, 'ipv6');
  return { list, places };
});

/** Does this IPv6 address stand for an IPv4 address that is forbidden? */
function embedsForbidden(address: string): boolean {
  const bytes = ipv6Bytes(address);
  const ipv4At = (place: readonly number[]) => place.map((at) => bytes[at]).join('.');
  // At the end, whatever the network: ISATAP, or a prefix that an operator chose for NAT64.
  if (ipv4At([12, 13, 14, 15]) === '169.254.169.254') return true;
  const found = translated.find(({ list }) => list.check(address, 'ipv6'));
  return found !== undefined && found.places.some((place) => forbidden.check(ipv4At(place), 'ipv4'));
}

export function ipv6Bytes(address: string): number[] {
  const [bare] = address.split('%', 1);
  // The URL parser writes a dotted end as two groups.
  const [head = '', tail] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::');
  const groupsOf = (text: string) => text.split(':').filter((group) => group !== '');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].flatMap((group) => {
    const value = parseInt(group, 16);
    return [value >> 8, value & 255];
  });
}

/** What kind of address is this IP literal (no brackets)? Throws RangeError for anything that is not one. */
export function addressClass(address: string): AddressClass {
  const version = isIP(address);
  if (version === 0) throw new RangeError('not an IP address');
  const family = version === 4 ? 'ipv4' : 'ipv6';
  if (forbidden.check(address, family) || unusable.check(address, family)) return 'forbidden';
  if (version === 6 && embedsForbidden(address)) return 'forbidden';
  return local.check(address, family) ? 'local' : 'public';
}

/** What callers append: an endpoint copied from a provider's docs, or /v1 alone. */
const APPENDED =
  /(?:\/v1(?:\/(?:chat\/completions|completions|responses|messages|embeddings|models|moderations|images\/generations|audio\/(?:speech|transcriptions|translations)|realtime))?|(?:\/v1)?\/chat\/completions)$/i;

/**
 * Brings a provider's base URL into the one form the forwarder appends paths to: no trailing slash, no `/v1`, no
 * endpoint.
 * A problem is a remedy in words and never contains the value, which may hold a credential.
 */
export function normaliseProviderUrl(value: string): ProviderUrlResult {
  // The URL parser silently drops tabs and newlines and turns `\` into `/`; a setting that needs that is a mistake.
  if (!/^[\x21-\x7e]+$/.test(value) || value.includes('\\')) {
    return { problem: 'must be a URL of visible ASCII characters without spaces or backslashes' };
  }
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value)) {
    return {
      problem: 'must be a well-formed URL that starts with https:// (or http:// for a local provider)',
    };
  }
  const parsed = new URL(value);
  if (parsed.username !== '' || parsed.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(value)) {
    return {
      problem: 'must not contain a user name or password; give the credential as the provider secret',
    };
  }
  // Tested on the text: an empty `?` or `#` leaves `search` and `hash` empty, yet would swallow appended paths.
  if (value.includes('?') || value.includes('#'))
    return { problem: 'must not contain a query or a fragment' };
  if (parsed.port === '0') return { problem: 'must not name port 0' };

  const problem = hostProblem(parsed);
  if (problem !== null) return { problem };

  const path = parsed.pathname.replace(/\/+$/, '');
  const [appended] = APPENDED.exec(path) ?? [];
  if (appended !== undefined) {
    const right = `${parsed.origin}${path.slice(0, -appended.length).replace(/\/+$/, '')}`;
    return {
      problem: `remove the trailing ${appended.toLowerCase()}: callers send it themselves. Use ${right}`,
    };
  }
  return { url: `${parsed.origin}${path}` };
}

/** What is wrong with the host of this URL if it is an IP address; null: nothing. A name is checked when it is resolved. */
export function hostProblem({ hostname, protocol }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return null;
  const kind = addressClass(host);
  if (kind === 'forbidden')
    return 'must not point to a link-local, unspecified, multicast or cloud metadata address';
  return kind === 'public' && protocol === 'http:'
    ? 'must use https:// for a public address; plain http:// would send the secret in clear'
    : null;
}

/** The scheme, host and port of a URL whose path or query may be a credential, as those of most webhooks are. */
export function shownUrl(url: string): string {
  const origin = url.split('/', 3).join('/');
  return url === origin || url === `${origin}/` ? url : `${origin}/…`;
}
