/**
 * Paths that name the model: of the Gemini API (`POST /v1beta/{model=models/*}:generateContent`) and Vertex AI, which has
 * more segments before it; of Bedrock; and of Azure OpenAI, by the name of the deployment.
 */
const MODEL_IN_PATH =
  /\/models\/([^/]+):[A-Za-z]+$|\/model\/([^/]+)\/(?:converse|invoke|count-tokens)[a-z-]*$|\/deployments\/([^/]+)\//;

/** Returns the model named in a path; null if there is none. @param path raw, without the query */
export function modelFromPath(path: string): string | null {
  const [, gemini, bedrock, azure] = MODEL_IN_PATH.exec(path) ?? [];
  const name = gemini ?? bedrock ?? azure;
  if (name === undefined) return null;
  // A copy: a slice keeps the whole path alive.
  if (!name.includes('%')) return Buffer.from(name).toString();
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}
