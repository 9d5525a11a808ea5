import { createHash, createHmac, hash } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { AwsSigner } from '../../../src/providers/credentials/aws-signer.js';
import { amzDate, authorizationOf, signingKey } from '../../../src/providers/credentials/sigv4.js';
import { check } from '../../support/property.js';

const KEY_ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const AT = Date.UTC(2015, 7, 30, 12, 36);
const SCOPE = { day: '20150830', region: 'us-east-1', service: 'service' };
const NON_UNRESERVED = `@#$%^=&+=${'/,?><`";:\\|][{}'}`;
const UNRESERVED = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Signs as the AWS test suite says: every header that is listed. */
function sign(target: string, headers: string[] = [], method = 'GET', body = ''): string {
  const all = [...headers, 'host', 'example.amazonaws.com', 'x-amz-date', amzDate(AT)];
  const request = { method, target, headers: all, payloadHash: hash('sha256', body, 'hex') };
  return authorizationOf(request, KEY_ID, signingKey(SECRET, SCOPE), SCOPE, amzDate(AT));
}

const signatureOf = (authorization: string) => /Signature=([0-9a-f]{64})$/.exec(authorization)![1];

/** The AWS Signature Version 4 test suite. Raw targets: what is not ASCII there is encoded, as it is on the wire. */
describe('the published test vectors of AWS', () => {
  it.each([
    ['get-vanilla', '/', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    [
      'get-vanilla-empty-query-key',
      '/?Param1=value1',
      'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
    ],
    [
      'get-vanilla-query-order-key-case',
      '/?Param2=value2&Param1=value1',
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    ],
    [
      'get-vanilla-query-unreserved',
      `/?${UNRESERVED}=${UNRESERVED}`,
      '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
    ],
    ['get-vanilla-utf8-query', '/?ሴ=bar', '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04'],
    [
      'get-vanilla-utf8-query, encoded',
      '/?%E1%88%b4=bar',
      '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
    ],
    ['get-unreserved', `/${UNRESERVED}`, '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f'],
    ['get-utf8', '/ሴ', '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85'],
    ['get-space', '/example space/', '652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741'],
    ['get-slash', '//', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    ['get-slashes', '//example//', '9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84'],
    ['get-slash-dot-slash', '/./', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    [
      'get-slash-pointless-dot',
      '/./example',
      'ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5',
    ],
    ['get-relative', '/example/..', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    [
      'get-relative-relative',
      '/example1/example2/../..',
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    ],
  ])('%s', (_, target, signature) => expect(signatureOf(sign(target))).toBe(signature));

  it.each([
    [
      'get-header-key-duplicate',
      ['my-header1', 'value2', 'my-header1', 'value2', 'my-header1', 'value1'],
      'c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea',
    ],
    [
      'get-header-value-order',
      ['my-header1', 'value4', 'my-header1', 'value1', 'my-header1', 'value3', 'my-header1', 'value2'],
      '08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01',
    ],
    [
      'get-header-value-trim',
      ['my-header1', ' value1', 'my-header2', ' "a   b   c" '],
      'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
    ],
  ])('%s', (_, headers, signature) => expect(signatureOf(sign('/', headers))).toBe(signature));

  it.each([
    ['post-vanilla', '/', [], '', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
    [
      'post-vanilla-query',
      '/?Param1=value1',
      [],
      '',
      '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
    ],
    [
      'post-x-www-form-urlencoded',
      '/',
      ['content-type', 'application/x-www-form-urlencoded'],
      'Param1=value1',
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
    [
      'post-x-www-form-urlencoded-parameters',
      '/',
      ['content-type', 'application/x-www-form-urlencoded; charset=utf8'],
      'Param1=value1',
      '1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe',
    ],
  ])('%s', (_, target, headers, body, signature) =>
    expect(signatureOf(sign(target, headers, 'POST', body))).toBe(signature),
  );

  it('post-vanilla-query-nonunreserved, encoded', () => {
    const [first, second] = NON_UNRESERVED.split('=&');
    const [name, value] = [second!.slice(0, 1), second!.slice(2)];
    const target = `/?${encodeURIComponent(first!)}=&${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
    expect(signatureOf(sign(target, [], 'POST'))).toBe(
      '66c82657c86e26fb25238d0e69f011edc4c6df5ae71119d7cb98ed9b87393c1e',
    );
  });

  it('get-vanilla: the whole header', () => {
    expect(sign('/')).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ' +
        'Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    );
  });

  it('S3, which signs the path as it is sent: GET Object of its API reference', () => {
    const at = Date.UTC(2013, 4, 24);
    const empty = hash('sha256', '', 'hex');
    const scope = { day: '20130524', region: 'us-east-1', service: 's3' };
    const request = {
      method: 'GET',
      target: '/test.txt',
      headers: [
        'host',
        'examplebucket.s3.amazonaws.com',
        'range',
        'bytes=0-9',
        'x-amz-content-sha256',
        empty,
        'x-amz-date',
        amzDate(at),
      ],
      payloadHash: empty,
    };
    const key = signingKey('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', scope);
    expect(signatureOf(authorizationOf(request, 'AKIAIOSFODNN7EXAMPLE', key, scope, amzDate(at)))).toBe(
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    );
  });
});

/** Node's hash in the form that the SDK's signer takes. */
class Sha256 {
  private readonly state;
  constructor(secret?: string | Uint8Array) {
    this.state = secret === undefined ? createHash('sha256') : createHmac('sha256', secret);
  }
  update(data: Uint8Array): void {
    this.state.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.state.digest()));
  }
  reset(): void {}
}

describe("the AWS SDK's own signer", () => {
  const segment = fc.stringMatching(/^[A-Za-z0-9._~:@!$&'()*+,;=-]{1,12}$/);
  // The SDK copies a query into a plain object, so it loses a parameter of this name.
  const text = fc
    .string({ unit: 'grapheme', maxLength: 12 })
    .filter((value) => value.isWellFormed() && value !== '__proto__');

  it('signs any request alike: paths, escapes, queries, headers, bodies, session tokens', async () => {
    await check(
      fc.asyncProperty(
        fc.array(fc.oneof(segment, text.map(encodeURIComponent)), { minLength: 1, maxLength: 5 }),
        fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name, maxLength: 4 }),
        fc.uint8Array({ maxLength: 64 }),
        fc.option(fc.stringMatching(/^[A-Za-z0-9/+=]{1,40}$/)),
        fc.constantFrom('bedrock', 'sagemaker'),
        async (segments, parameters, body, sessionToken, service) => {
          const path = `/${segments.filter((part) => part !== '.' && part !== '..').join('/')}`;
          const query = parameters.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
          const theirs = new SignatureV4({
            service,
            region: 'eu-central-1',
            credentials: {
              accessKeyId: KEY_ID,
              secretAccessKey: SECRET,
              ...(sessionToken && { sessionToken }),
            },
            sha256: Sha256 as never,
            applyChecksum: false,
          });
          const signed = await theirs.sign(
            {
              method: 'POST',
              protocol: 'https:',
              hostname: 'bedrock-runtime.eu-central-1.amazonaws.com',
              path,
              query: Object.fromEntries(parameters),
              headers: {
                host: 'bedrock-runtime.eu-central-1.amazonaws.com',
                'content-type': 'application/json',
                'x-amz-meta': 'a  b',
              },
              body,
            },
            { signingDate: new Date(AT) },
          );
          const ours = new AwsSigner(
            'bedrock-runtime.eu-central-1.amazonaws.com',
            { accessKeyId: KEY_ID, secretAccessKey: SECRET, sessionToken, region: 'eu-central-1', service },
            () => AT,
          ).sign(
            'POST',
            query === '' ? path : `${path}?${query}`,
            ['Content-Type', 'application/json', 'X-Unsigned', 'x', 'X-Amz-Meta', 'a  b'],
            Buffer.from(body),
          );
          expect(ours.at(-1)).toBe(signed.headers.authorization);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a signed request', () => {
  const credential = {
    accessKeyId: KEY_ID,
    secretAccessKey: SECRET,
    sessionToken: 'tok',
    region: 'r',
    service: 's',
  };

  it("has the gateway's signature in place of the client's, and every other header as it came", () => {
    const headers = [
      ...['X-Amz-Date', '20200101T000000Z', 'Accept', '*/*', 'x-amz-security-token', 'theirs'],
      ...[
        'X-AMZ-Content-Sha256',
        'UNSIGNED-PAYLOAD',
        'X-Twice',
        '1',
        'X-Twice',
        '2',
        'authorization',
        'AWS4 x',
      ],
    ];
    const signed = new AwsSigner('h', credential, () => AT).sign('GET', '/', headers, null);
    expect(signed.slice(0, 6)).toEqual(['Accept', '*/*', 'X-Twice', '1', 'X-Twice', '2']);
    expect(signed.slice(6, 10)).toEqual(['X-Amz-Date', '20150830T123600Z', 'X-Amz-Security-Token', 'tok']);
    expect(signed.slice(10)).toEqual([
      'Authorization',
      expect.stringContaining('SignedHeaders=host;x-amz-date;x-amz-security-token,'),
    ]);
  });

  it('has a key of its day, also after midnight', () => {
    let at = Date.UTC(2026, 0, 1, 23, 59, 59);
    const signer = new AwsSigner('h', credential, () => at);
    signer.sign('GET', '/', [], null);
    at += 2_000;
    const fresh = new AwsSigner('h', credential, () => at);
    expect(signer.sign('GET', '/', [], null)).toEqual(fresh.sign('GET', '/', [], null));
    expect(signer.sign('GET', '/', [], null).at(-1)).toContain('/20260102/');
  });
});
