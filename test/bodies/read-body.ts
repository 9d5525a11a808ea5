import { JsonMembers } from '../../src/bodies/json-members.js';
import { RequestReader } from '../../src/bodies/request-reader.js';

/** Reads a whole body that comes in chunks of these sizes, over and over. */
export function readBody(body: Buffer, sizes?: readonly number[]): RequestReader {
  return readWith(new RequestReader(), body, sizes);
}

/** The same for a row, as the body of a call that no policy reads. */
export function readForRow(body: Buffer, sizes?: readonly number[]): RequestReader {
  return readWith(new RequestReader(false), body, sizes);
}

function readWith(reader: RequestReader, body: Buffer, sizes: readonly number[] = [65_536]): RequestReader {
  for (let at = 0, i = 0; at < body.length; i++) {
    const chunk = Buffer.from(body.subarray(at, at + sizes[i % sizes.length]!));
    reader.add(chunk);
    at += chunk.length;
    // The read buffer is somebody else's again.
    chunk.fill(0);
  }
  reader.finish();
  return reader;
}

/** What is certain about a body. */
export function membersOf(body: Buffer, sizes?: readonly number[]): JsonMembers {
  return new JsonMembers(body, readBody(body, sizes).json);
}
