//! The tree of elements of a drawing, and its text for a file or a page.

use std::fmt::Write as _;

use maud::Escaper;

/// Place in which a drawing is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A separate file, without a style sheet.
    File,
    /// A page, whose style sheet sets the background, the font and the colours of classes.
    Page,
}

/// Part of a drawing.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(String),
    Element(Element),
    Several(Vec<Node>),
}

/// Element with its attributes and its content.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    name: &'static str,
    for_file_only: bool,
    attributes: Vec<Attribute>,
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Attribute {
    name: &'static str,
    value: String,
    for_file_only: bool,
}

/// Returns an element without attributes or content.
pub(crate) fn element(name: &'static str) -> Element {
    Element {
        name,
        for_file_only: false,
        attributes: Vec::new(),
        nodes: Vec::new(),
    }
}

/// Returns a path that is stroked in the colour of its group.
pub(crate) fn coloured(path: impl Into<String>) -> Element {
    element("path")
        .with("d", path)
        .with("fill", "none")
        .with("stroke", "currentColor")
}

/// Returns a shape that is filled with the colour of its group.
pub(crate) fn filled(shape: impl Into<String>) -> Element {
    let path = element("path").with("d", shape);
    path.with("fill", "currentColor")
}

/// Returns the tooltip of a part of a drawing.
pub(crate) fn title(says: &str) -> Element {
    element("title").holding(says)
}

impl Element {
    /// Adds an attribute.
    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        self.attribute(name, value.into(), false)
    }

    /// Adds an attribute, if there is a value.
    pub(crate) fn with_some(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds an attribute for a file. In a page, the style sheet replaces it.
    pub(crate) fn in_file(self, name: &'static str, value: impl Into<String>) -> Self {
        self.attribute(name, value.into(), true)
    }

    fn attribute(mut self, name: &'static str, value: String, for_file_only: bool) -> Self {
        self.attributes.push(Attribute {
            name,
            value,
            for_file_only,
        });
        self
    }

    /// Adds nodes to the content of the element.
    pub(crate) fn holding(mut self, nodes: impl Into<Node>) -> Self {
        self.nodes.push(nodes.into());
        self
    }

    /// Omits the element in a page.
    pub(crate) fn for_file_only(mut self) -> Self {
        self.for_file_only = true;
        self
    }

    fn write(&self, target: Target, text: &mut String) {
        let is_left_out = |only: bool| only && target == Target::Page;
        if is_left_out(self.for_file_only) {
            return;
        }
        let Self { name, nodes, .. } = self;
        let _ = write!(text, "<{name}");
        for one in &self.attributes {
            if !is_left_out(one.for_file_only) {
                let _ = write!(text, " {}=\"", one.name);
                escape(&one.value, text);
                text.push('"');
            }
        }
        if nodes.is_empty() && target == Target::Page {
            text.push_str("/>");
            return;
        }
        text.push('>');
        nodes.iter().for_each(|node| node.write(target, text));
        let _ = write!(text, "</{name}>");
    }
}

fn escape(value: &str, text: &mut String) {
    let _ = Escaper::new(text).write_str(value);
}

impl Node {
    /// Returns the text of the tree.
    pub(crate) fn text(&self, target: Target) -> String {
        let mut text = String::new();
        self.write(target, &mut text);
        text
    }

    fn write(&self, target: Target, text: &mut String) {
        match self {
            Self::Text(own) => escape(own, text),
            Self::Element(element) => element.write(target, text),
            Self::Several(nodes) => nodes.iter().for_each(|node| node.write(target, text)),
        }
    }
}

impl From<Element> for Node {
    fn from(element: Element) -> Self {
        Self::Element(element)
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<Self>> for Node {
    fn from(node: Option<Self>) -> Self {
        node.into_iter().collect()
    }
}

impl<const COUNT: usize> From<[Self; COUNT]> for Node {
    fn from(nodes: [Self; COUNT]) -> Self {
        Self::Several(nodes.into())
    }
}

impl FromIterator<Self> for Node {
    fn from_iter<I: IntoIterator<Item = Self>>(nodes: I) -> Self {
        Self::Several(nodes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lacks_what_its_style_sheet_says() {
        let paper = element("rect").with("class", "paper").for_file_only();
        let curve = element("path")
            .with("class", "c1")
            .in_file("color", "#123456")
            .with("d", "M0 0");
        let name = element("text")
            .with("x", "1")
            .holding(Node::from("a < \"b\" & c"));
        let drawn = Node::from([paper.into(), curve.into(), name.into()]);
        assert_eq!(
            drawn.text(Target::File),
            "<rect class=\"paper\"></rect><path class=\"c1\" color=\"#123456\" d=\"M0 0\"></path>\
             <text x=\"1\">a &lt; &quot;b&quot; &amp; c</text>"
        );
        assert_eq!(
            drawn.text(Target::Page),
            "<path class=\"c1\" d=\"M0 0\"/><text x=\"1\">a &lt; &quot;b&quot; &amp; c</text>"
        );
    }
}
