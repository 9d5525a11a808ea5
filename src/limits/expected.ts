import { GatewayError } from '../errors/gateway-error.js';
import type { JsonMember } from '../bodies/json-members.js';
import type { MostUnits } from '../pricing/costs/units.js';
import type { DatedPrice } from '../pricing/price-resolver.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';
import type { Estimate } from './estimates.js';
import type { CallReservation } from './ledger/ledger.js';

/** No call uses more: a million dollars, a trillion tokens. */
const MAX_NANO = 10n ** 15n;
export const MAX_TOKENS = 1e12;

/** Service tiers that cost at most what a request without one costs. */
const NOT_DEARER = new Set([
  'default',
  'standard',
  'standard_only',
  'standard-only',
  'on_demand',
  'auto',
  'unspecified',
  'flex',
  'batch',
]);
/** A tier that cannot be read; no price names it. */
const UNREAD = '';
const FORM = /^multipart\//i;
/** Names that are repeated in a message. */
const TIER = /^[a-z][a-z0-9_-]{0,31}$/;
const NO_TIERS: readonly string[] = [];
const TIER_MEMBERS = ['service_tier', 'serviceTier', 'speed'];
/** Bedrock's InvokeModel, and Vertex AI. */
const TIER_HEADERS = ['x-amzn-bedrock-service-tier', 'x-vertex-ai-llm-shared-request-type'];

/** What a call will use, as far as it is known before it is forwarded. */
export interface Expected {
  readonly estimate: Estimate;
  readonly input: number;
  readonly output: number;
  /** It is the most that the call can use, at the dearest price. */
  readonly isMost: boolean;
  /** Service tiers that may cost more than the price of the model. */
  readonly tiers: readonly string[];
  /** The most units with a price of their own that the request asks for. */
  readonly units: MostUnits;
}

/**
 * The service tiers that a request asks for and that may cost more than the model's price, in lower case. Anthropic's fast
 * mode is the tier `fast`.
 *
 * @throws GatewayError model_not_determined if the body cannot be read
 */
export function dearerTiers({ members, headers, body }: PolicyCall): readonly string[] {
  if (members.problem !== null && body !== null && body.length > 0 && !isForm(headers))
    throw new GatewayError('model_not_determined', {
      message: `What this request costs cannot be determined: ${members.problem}.`,
    });
  const asked: unknown[] = [];
  for (const name of TIER_HEADERS) if (headers[name] !== undefined) asked.push(headers[name]);
  if (members.problem === null)
    for (const name of TIER_MEMBERS)
      for (const member of members.all(name)) asked.push(...tiersIn(member, body ?? Buffer.alloc(0)));
  if (asked.length === 0) return NO_TIERS;
  return asked
    .filter((tier) => typeof tier === 'string')
    .map((tier) => tier.toLowerCase().replace(/^service_tier_/, ''))
    .filter((tier) => !NOT_DEARER.has(tier));
}

/** Bedrock's Converse has an object with the type: any text in it may be the one that counts. */
function tiersIn({ value, start, end }: JsonMember, body: Buffer): unknown[] {
  // One that is too long to be read may say anything.
  if (value === undefined) return [UNREAD];
  if (typeof value !== 'object' || value === null) return [value];
  const texts = body.toString('utf8', start, end).match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  return texts.map((text) => JSON.parse(text) as string).filter((text) => text !== 'type');
}

/** Forms are uploads of pictures and sound, which have no service tiers. */
export function isForm(headers: PolicyCall['headers']): boolean {
  return FORM.test(headers['content-type'] ?? '');
}

/** True for a call of the Responses API that goes on after its response, which reports no usage. */
export function runsInBackground({ members, endpoint }: PolicyCall): boolean {
  if (!endpoint.endsWith('/responses') || members.problem !== null) return false;
  return members.all('background').some(({ value }) => value !== false && value !== null);
}

/** The most images that OpenAI's API makes for one request: a form does not say how many. */
const MAX_IMAGES = 10;

/** @param bytes of the request body */
export function mostUnits(call: PolicyCall, bytes: number): MostUnits {
  return { input_characters: bytes, images: isForm(call.headers) ? MAX_IMAGES : call.choices };
}

/** Why the cost of a call cannot be known; null if it can. @param dated null: the model has no price */
export function whyUnpriced(dated: DatedPrice | null, { tiers }: Expected): GatewayError | null {
  if (dated === null) return new GatewayError('model_not_priced');
  const [unit] = dated.price.unboundedUnits;
  if (unit !== undefined)
    return new GatewayError('model_not_priced', {
      message: `This gateway key has a budget in USD, and what this model costs depends on ${unit}, which is known only from its response. Ask for a budget with "unpriced": "allow".`,
    });
  const tier = tiers.find((name) => !dated.price.hasTier(name));
  if (tier === undefined) return null;
  const name = TIER.test(tier) ? ` "${tier}"` : '';
  return new GatewayError('model_not_priced', {
    message: `This gateway key has a budget in USD, and this model has no price for the service tier${name} that the request asks for. Leave it out, or ask for a price with this tier.`,
  });
}

/** What a call reserves of a budget in USD, in nano-dollars. @param startedAt Unix milliseconds */
export function costOf(
  { price }: DatedPrice,
  { input, output, isMost, units }: Expected,
  startedAt: number,
): bigint {
  if (isMost) return price.highestCostOf(input, output, units);
  const usage = {
    promptTokens: input,
    cachedTokens: null,
    cacheWriteTokens: null,
    completionTokens: output,
    reasoningTokens: null,
    extra: null,
    reportedCost: null,
  };
  const ofTokens = price.costOf(usage, startedAt, true) ?? MAX_NANO;
  return price.hasBoundedUnits ? ofTokens + price.highestCostOf(0, 0, units) : ofTokens;
}

export function reserve(usd: bigint, { input, output }: Expected): CallReservation {
  return { usd: Number(usd < MAX_NANO ? usd : MAX_NANO), tokens: input + output };
}
