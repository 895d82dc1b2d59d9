// Data of the page: blocks of gzip in base64, decoded when they are asked for.
// Text from runs reaches the page as text alone: nothing here parses markup.
const byId = (id) => document.getElementById(id);

const decodedBlocks = new Map();

async function inflated(id) {
  const packed = atob(byId(id).textContent);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function block(id) {
  if (!decodedBlocks.has(id)) {
    decodedBlocks.set(id, inflated(id).then(JSON.parse));
  }
  return decodedBlocks.get(id);
}

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function trouble(error) {
  const place = byId("trouble");
  place.textContent = `Part of this report could not be shown: ${error.message || error}`;
  place.hidden = false;
  console.error(error);
}
