/** A file with an identity token of this workload, and the only host that the token may be sent to. */
export interface IdentityTokenFile {
  /** Providers refer to it by this. */
  readonly name: string;
  readonly path: string;
  /** Scheme, host and port. */
  readonly origin: string;
}

export const IDENTITY_TOKEN_FILES_REMEDY =
  'must look like name=/path/of/file@https://host, several separated by commas, each name once';

const ENTRY = /^([a-z0-9][a-z0-9_-]{0,62})=(\/[^\0,]+)@(https:\/\/[^@,/?#]+)$/;

/** Reads IDENTITY_TOKEN_FILES. @returns undefined if it is malformed */
export function identityTokenFiles(value: string): readonly IdentityTokenFile[] | undefined {
  const files: IdentityTokenFile[] = [];
  for (const entry of value.split(',')) {
    const [, name, path, host] = ENTRY.exec(entry.trim()) ?? [];
    if (name === undefined || path === undefined || host === undefined || !URL.canParse(host))
      return undefined;
    if (files.some((file) => file.name === name)) return undefined;
    files.push({ name, path, origin: new URL(host).origin });
  }
  return files;
}
