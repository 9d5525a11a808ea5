import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy } from '@fastify/busboy';
import { isModelName, type NamedModel } from './named-model.js';

const TYPE = /^multipart\/form-data\s*;\s*boundary=(?:"([\w'()+,./:=?-]{1,70})"|([\w'+.-]{1,70}))\s*$/i;
const MAX_PARTS = 1_000;
const MAX_HEADER_BYTES = 4_096;
/** Bytes that are parsed in one go. */
const SLICE_BYTES = 65_536;

/**
 * Headers of a part that every parser reads alike: no folding, no escape, no parameter twice, no charset but UTF-8, no
 * coding. Values in quotes or without, as the official SDKs, .NET and curl write them.
 */
const VALUE = String.raw`(?:"[^"\\\r\n]*"|[\w.!#$&+^|~-]+)`;
const DISPOSITION = new RegExp(
  String.raw`^content-disposition:[ \t]*form-data;[ \t]*name=(?:"[\w.[\]-]+"|[\w.-]+)` +
    String.raw`(?:;[ \t]*filename=${VALUE})?(?:;[ \t]*filename\*=[\w.!#$&+^|~%'-]+)?[ \t]*$`,
  'i',
);
const OTHER_HEADER =
  /^(?:content-type:(?!.*charset)|content-type:[ \t]*[\w.+/-]+;[ \t]*charset="?(?:utf-8|us-ascii)"?[ \t]*$|content-length:|content-transfer-encoding:[ \t]*(?:7bit|8bit|binary)[ \t]*$)/i;
const HTML_CHARSET = '_charset_';

/**
 * Finds the model in a multipart/form-data body. The body is rejected if two parsers could read different parts from it.
 *
 * @param type the Content-Type
 */
export async function modelOfMultipart(body: Buffer, type: string): Promise<NamedModel> {
  const [, quoted, bare] = TYPE.exec(type) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) return unclear('its Content-Type is not multipart/form-data with one boundary');
  const problem = ambiguity(body, `--${boundary}`);
  if (problem !== null) return unclear(problem);
  const values: (string | null)[] = [];
  let isHtmlForm = false;
  const parser = new Busboy({ headers: { 'content-type': type } });
  parser.on('field', (name, value, nameTruncated, valueTruncated) => {
    if (name === HTML_CHARSET) isHtmlForm = true;
    if (isModelName(name)) values.push(nameTruncated || valueTruncated ? null : value);
  });
  parser.on('file', (name, file) => {
    if (isModelName(name ?? '')) values.push(null);
    file.resume();
  });
  try {
    await pipeline(Readable.from(slices(body)), parser);
  } catch {
    return unclear('the multipart body is not well-formed');
  }
  const [model] = values;
  if (isHtmlForm) return unclear(`the body has a part named ${HTML_CHARSET}`);
  if (values.length > 1) return unclear(`the body has ${values.length} parts named "model"`);
  if (model === undefined) return unclear('the body has no part named "model"');
  if (model === null) return unclear('the part named "model" is a file or too long');
  return { model, problem: null };
}

function unclear(problem: string): NamedModel {
  return { model: null, problem };
}

function* slices(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += SLICE_BYTES) yield body.subarray(at, at + SLICE_BYTES);
}

/** What two parsers could read in two ways; null if there is nothing of the kind. @param delimiter with its two hyphens */
function ambiguity(body: Buffer, delimiter: string): string | null {
  let parts = 0;
  for (let at = 0; ;) {
    const after = at + delimiter.length;
    // Lenient parsers accept a delimiter after a bare line feed, so it may stand nowhere else.
    if (at > 0 && body.toString('latin1', at - 2, at) !== '\r\n') return 'the boundary stands inside a part';
    if (body.toString('latin1', at, after) !== delimiter) return 'the body does not start with its boundary';
    const rest = body.toString('latin1', after, after + 5);
    if (rest === '--' || rest === '--\r\n') return null;
    if (!rest.startsWith('\r\n'))
      return 'the boundary stands inside a part, or something follows the last one';
    if (++parts > MAX_PARTS) return `the body has more than ${MAX_PARTS} parts`;
    const head = body.toString('latin1', after + 2, after + 2 + MAX_HEADER_BYTES);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1 || !hasPlainHeaders(head.slice(0, end).split('\r\n')))
      return 'a part has headers that parsers read differently';
    const next = body.indexOf(delimiter, after, 'latin1');
    if (next === -1) return 'the last boundary is missing';
    if (next < after + 2 + end + 2) return 'the boundary stands inside a part';
    at = next;
  }
}

function hasPlainHeaders(lines: readonly string[]): boolean {
  const dispositions = lines.filter((line) => DISPOSITION.test(line));
  const others = lines.filter((line) => OTHER_HEADER.test(line) && !/[\r\n]/.test(line));
  const names = new Set(others.map((line) => line.slice(0, line.indexOf(':')).toLowerCase()));
  return dispositions.length === 1 && names.size === others.length && others.length + 1 === lines.length;
}
