import { hash } from 'node:crypto';
import type { RequestSigner } from './request-signer.js';
import { amzDate, authorizationOf, signingKey } from './sigv4.js';

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials; null for those of a user. */
  readonly sessionToken: string | null;
}

export interface AwsCredential extends AwsKeys {
  readonly region: string;
  readonly service: string;
}

/** Headers of a client's own signature. Those of the gateway's take their place. */
const REPLACED: ReadonlySet<string> = new Set([
  'authorization',
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-content-sha256',
  'x-amz-region-set',
]);

/**
 * Signs with AWS Signature Version 4: the method, the target, the body, and the headers that AWS requires. Credentials that
 * are renewed have a signer each, so that what a call is signed with does not change under it.
 */
export class AwsSigner implements RequestSigner {
  private day = '';
  private key: Buffer = Buffer.alloc(0);

  /** @param host host and port of the provider, as `Host` has them @param now wall clock in ms */
  constructor(
    private readonly host: string,
    private readonly credential: AwsCredential,
    private readonly now: () => number = Date.now,
  ) {}

  sign(method: string, target: string, headers: readonly string[], body: Buffer | null): string[] {
    const { accessKeyId, secretAccessKey, sessionToken, region, service } = this.credential;
    const date = amzDate(this.now());
    const scope = { day: date.slice(0, 8), region, service };
    if (scope.day !== this.day) {
      this.key = signingKey(secretAccessKey, scope);
      this.day = scope.day;
    }
    const payloadHash = hash('sha256', body ?? '', 'hex');
    const out: string[] = [];
    for (let i = 0; i < headers.length; i += 2) {
      if (!REPLACED.has(headers[i]!.toLowerCase())) out.push(headers[i]!, headers[i + 1]!);
    }
    out.push('X-Amz-Date', date);
    if (sessionToken !== null) out.push('X-Amz-Security-Token', sessionToken);
    // S3 requires it; other services compute the hash themselves.
    if (service === 's3') out.push('X-Amz-Content-Sha256', payloadHash);
    const signed = ['host', this.host];
    for (let i = 0; i < out.length; i += 2) {
      const name = out[i]!.toLowerCase();
      // AWS rejects a request with an `x-amz-` header that is not signed.
      if (name === 'content-type' || name.startsWith('x-amz-')) signed.push(name, out[i + 1]!);
    }
    const request = { method, target, headers: signed, payloadHash };
    out.push('Authorization', authorizationOf(request, accessKeyId, this.key, scope, date));
    return out;
  }
}
